"""The log-structured queue: one log of messages and outcomes, which is the queue.

    draft -> commit -> [one batch, one barrier] -> working set -> take -> settle -> [the next batch] -> finished
                                                      ^                                                    |
                                                      +- [a start reads the log]         [round of marks] -+-> file free

Rooms, bottom first; a room imports itself and the rooms above it in this list:

    format      bytes on disk: records, positions. Pure
    index       what is in memory: envelopes, messages, what keeps segments. Pure
    commit      items of the log, and the records in them
    read        contents, search, counting
    recovery    opening: locks, replay, live envelopes
    control     waiters, settlements, rounds of marks, moves, admission, clean stop
    conversion  all of a stopped queue for a conversion, and a new queue made by one
    fsck        checks of a stopped queue, and repairs

The modules, leaves first:

    parts       the objects that one queue is made of
    commit_requests  from the request of a commit to an item of the log
    provider    `LogQueue`: the `IQueue` over all of it
    assembly    makes and wires the parts
    metrics     metrics of log, rounds of marks, memory
    dump        prints a file of the queue
    running     opens a queue for a server, with its threads
    entry       `PROVIDER`: this provider as the program knows it
"""
