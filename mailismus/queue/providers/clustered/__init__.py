"""The clustered queue: entries in cluster files, messages in a spool, both behind a journal.

    draft -> commit -> [one batch, one barrier] -> memtable -> take -> settle -> [the next batch] -> gone
                                                      |                  ^
                                                      +- [checkpoint] -> cluster index

Rooms, bottom first; a room imports itself and the rooms above it in this list; `fsck` and `entry` are above the modules:

    format      bytes on disk: cluster file, journal record, slot names. Pure
    index       what is in memory: memtable (entries in the journal), cluster index (entries in clusters). Pure
    commit      items of the journal, spool ids, events of batches
    read        due scan, content, search, counting
    reclaim     what refers to message files, for their release
    checkpoint  moves live entries to cluster and message files, then frees journal segments
    recovery    opening: locks, replay, salvage, a missing journal; reading a stopped queue
    control     waiters, settlements, admission, results of batches, clean stop
    conversion  all of a stopped queue for a conversion, and a new queue made by one
    fsck        checks and repairs a stopped queue
    entry       `PROVIDER`: this provider as the program knows it

The modules, leaves first:

    parts       the objects that one queue is made of
    commit_requests  from the request of a commit to an item of the journal
    provider    `ClusteredQueue`: the `IQueue` over all of it
    assembly    makes and wires the parts
    running     opens a queue for a server, with its threads
    metrics     metrics of journal, checkpoints, entries, references
    dump        prints a file of the queue
"""
