"""The schedule: which job goes over which connection, and when. Pure: no sockets, names, timers, queue.

Why it is as it is: docs/decisions/0019-the-schedule-of-deliveries.md.

    job -> destination -> [choice] -> a queue of a connection -> begun -> ended
                            |  ^
                            v  | a worker, a limit or a trial is over
              the line for a worker, or a destination's own line

Modules, leaves first:

    limits       the settings of the schedule
    line         jobs that wait, fair by sender and message
    endpoint     an address and port: what is known of it, and limits all profiles together
    sorted_connections  the connections of a host: what is active, idle, has room
    host         a host for one profile
    pool         the workers: how many are free, and whether a message may have one more
    verification  the questions of clients about recipients of other hosts, as one pseudo-message
    shares       how many workers of another pool a message and a sender may have
    missed       hosts that missed what a profile demands, and credentials that were refused
    destdb       all hosts, and what is remembered of them
    destination  a next hop: its hosts by preference, its set of MX hosts, its waiting jobs
    destinations  the destinations in use, and when one is forgotten
    parked       destinations with jobs that wait for a limit or a trial
    choice       the connection or host for one job: in a fixed order
    placing      gives each job a place
    handing_out  the next job of a connection, and the end of one
    schedule     `Schedule`: moves jobs when something begins or ends

Words: a *worker* is a connection of the pool of `maxconnections`; a job has a *free ride* if it uses a connection that
others have; *newest* means made last; a *set* is the hosts of a next hop, by name, which domains share.
"""
