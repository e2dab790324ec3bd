"""A queue on RabbitMQ, Cassandra, and S3 or Swift, which several servers share.

Rooms, bottom first:

    stores      what the queue asks of a broker, a database and an object store: interfaces and clients
    format      tables, slices, triggers, marks and due rows. Pure
    view        the settings of slices and buckets, and the record of what they were
    setup       makes what a queue needs in its stores, and tells what is missing
    identity    epochs, the ids of messages, leases, claims
    counts      what each server has added to each slice
    enqueue     how a message gets in
    content     contents of messages
    due         what waits for its time
    hand        the shares that the broker told of, and their entries in memory
    settle      how entries end, or move into another share
    browse      listings, counts, flushes, and the clean-up of slices
    commits     commits of messages and settlements, and how their ends are told
    sharing     what servers have in common beside the mail
    duties      leases are renewed, what is here for long is claimed, the browse starts are moved
    parts       the parts of one queue, by name
    provider    `DistributedQueue`
    assembly    the wiring
    metrics     figures
    opening     a server's own directory: lock, mark, name
    clients     the clients of the services, from the settings
    setting_up  runs `setup` in a reactor of its own, for the command `queue setup`
    running     a queue of a server
    reaching    the stores for a command, which waits for each answer
    stopped     the queue without its server, to be read
    dump        prints what lies in the stores
    fsck        check and repair
    entry       `PROVIDER`
"""
