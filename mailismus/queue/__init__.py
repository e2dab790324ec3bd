"""The queue: what a provider promises, and the manager that every task uses.

Rooms, bottom first; modules without a room stand between `outcome` and `providers`:

    interface   what a provider promises, and what it does not
    due         what is due and what is out, in memory. Pure
    files       what providers on local files share
    clock       time of day that may jump, and ages all the same
    outcome     what becomes of an entry after an attempt. Pure
    providers   the implementations of the interface

The modules:

    words       checks further facts of messages and recipients before a commit. Pure
    gaps        what a listing could not read. Pure
    listeners   who waits for entries of an area
    out_entries entries that are out for delivery, and room for more
    in_doubt    outcomes that are not durable yet hold back deliveries
    jumps       hastens entries after the clock was set
    rounds      which bounces are reported together. Pure
    bounces     bounces on their way to their reports
    manager     outcomes to settlements; counts what is out and what is not durable yet
    audited     what the audit says of an entry. Pure
    filter      the words of FILTER. Pure
    finding     results of fsck as values. Pure
    provider    what the program asks of a provider beside the interface
    stopped     a stopped queue that is only read
    metrics     metrics of every queue, and of the manager
"""
