"""Limits: how much another server may get at a time, and in a minute. Pure.

Modules, bottom first:

    window      how many connections a host or an MX set may have now
    rate        messages and recipients a minute
    parts       the same over all servers of a shared queue
    domains     which `<destination>` of the configuration a domain belongs to
    sets        the window and the rate of each destination, in bounded memory

Times are monotonic seconds that the caller gives; there are no timers. *Not here*: which connection gets a job, and who
waits (`deliver.schedule`); which reply is a sign of too much (the caller).
"""
