"""The one-file-a-message queue: qmail's queue, each message a set of files named by an inode number.

Rooms and modules, each with what it is; a room may import the rooms above it, and the modules only the rooms:

    format       pure: names, states, lines and files of one message
    index        pure: what is known of each message; what a settlement makes of its files
    write        blocking: contents, envelopes, changes and cleanings, batch by batch
    recovery     a start: directories, what is found, what a crash left
    read         contents; search; a stopped queue
    control      drafts, group commit, admission
    conversion   all of a stopped queue for a conversion, and a new queue made by one
    provider     `ChunkQueue`: the verbs of `queue.interface`
    parts        the parts of one queue, by name
    assembly     makes them, leaves first
    metrics      figures
    beside       puts messages into the queue from another process than the server's
    signal       by which such a process tells the server
    running      a queue of a server, with its threads
    dump         prints a file readably
    fsck         check and repair of a stopped queue
    entry        `PROVIDER`

Source: seed 003, `docs/formats/chunk`, `docs/decisions/0028-the-queue-of-chunks`.
"""
