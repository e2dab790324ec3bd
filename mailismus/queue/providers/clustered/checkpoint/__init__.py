"""Checkpoints: entries and messages move from the journal to cluster and message files.

Modules, each with what it is:

    policy      when a checkpoint begins. Pure
    segments    journal segments in use: how many bytes, which failed, which are freed
    write       writes cluster and message files, makes them durable
    cleanup     marks finished lines, removes clusters without a live line
    files       the file work of a checkpoint before its record
    apply       moves entries from the memtable to the cluster index, in slices
    sealing     the commit record, and what follows when it is durable or failed
    run         makes checkpoints, one at a time
"""
