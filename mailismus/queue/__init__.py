"""The queue: the interface of providers, and the manager that every task uses.

Rooms, bottom first; modules without a room stand between `outcome` and `acts`:

    redirect    redirections of an entry to another relay or recipient. Pure
    content     the bytes of a message: while it arrives, and when it is read
    servers     what is known of a server that shares a queue. Pure
    interface   the promises of a provider, and their limits
    due         index in memory of entries that are due and out. Pure
    files       common parts of providers on local files
    fsck        common parts of their checks and repairs
    clock       time of day that may jump, and ages all the same
    outcome     decisions about the outcome of an attempt. Pure
    acts        acts of administrators: hold, release, delete, bounce, redirect, rules for mail to come
    convert     from one provider to another, on a stopped queue
    providers   the implementations of the interface

The modules:

    entering      message and entries of a submission, successors of settled entries. Pure
    commits       commits whose end is told by a Deferred
    commit_request  what one commit asks of a queue on local files
    words         checks further facts of messages and recipients before a commit. Pure
    gaps          entries that a listing could not read. Pure
    sums          sums of a count. Pure
    pages         pages of a search. Pure
    plan_parts    parts of a plan by which another process counts. Pure
    throttle      pauses of work that leaves most of the processor to other work
    turning       a reactor of a command's own, turned while it waits
    flushes       components that are told of a flush. Pure
    coming_back   entries that are out, and that an act waits for. Pure
    arriving      new mail that rules of administrators hold
    listeners     tasks that wait for entries of an area
    out_entries   entries that are out for delivery, and room for more
    not_durable   outcomes that are not durable yet hold back deliveries
    jumps         hastens entries after the clock was set
    rounds        bounces that are reported together. Pure
    bounces       bounces on their way to their reports
    acting        what acts of administrators may do to the queue
    manager       turns outcomes into settlements
    addressed     the recipient of an entry in a line of the mail log. Pure
    audited       audit record of an entry. Pure
    filter        the words of FILTER. Pure
    reactor       the part of the reactor that a provider may use
    limits        limits that hold over all servers of a shared queue. Pure
    sharing       what servers of a shared queue have in common beside its mail
    provider      requirements of the program on a provider, beside the interface
    waiting       why an entry is still there, for those who list entries. Pure
    opened        a queue on local files that a start has locked and opened, with its threads
    stopped       a stopped queue, opened for reading
    metrics       metrics of every queue, and of the manager
"""
