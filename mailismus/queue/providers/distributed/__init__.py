"""A queue on RabbitMQ, Cassandra, and S3 or Swift, which several servers share.

Rooms, bottom first:

    stores      what the queue asks of a broker, a database and an object store: interfaces and clients
    regular     what is done each so many seconds
    format      tables, slices, triggers, marks and due rows. Pure
    news        what servers tell each other
    circuits    a store that fails is left alone, and probed
    view        the settings of slices and buckets, and the record of what they were
    identity    epochs, the ids of messages, leases, claims, tasks, the database's clock
    limits      which part of each limit over all servers this one has
    setup       makes what a queue needs in its stores, and tells what is missing
    counts      what each server has added to each slice
    enqueue     how a message gets in
    content     contents of messages
    due         what waits for its time
    hand        the shares that the broker told of, and their entries in memory
    settle      how entries end, or move into another share
    browse      listings, counts, flushes, the clean-up of slices, and queues of the broker that are filled again
    sweep       contents that nothing names are removed
    commits     commits of messages and settlements, and how their ends are told
    sharing     what servers have in common beside the mail
    duties      leases are renewed, what is here for long is claimed, the browse starts are moved
    probes      how each store is asked whether it is well again
    admission   whether mail is taken, and whether entries are handed out
    watching    what is looked at now and then: the database's clock, the dead queue, lost queues
    parts       the parts of one queue, by name
    provider    `DistributedQueue`
    assembly    the wiring
    metrics     figures
    opening     a server's own directory: lock, mark, name
    clients     the clients of the services, from the settings
    running     a queue of a server
    reaching    the stores for a command, which waits for each answer
    setting_up  `setup` for the command `queue setup`
    stopped     the queue without its server, to be read
    dump        prints what lies in the stores
    fsck        check and repair
    conversion  all of the queue for another provider, and mail of another one
    entry       `PROVIDER`
"""
