"""Checkpoints: entries and messages move from the journal to cluster and message files.

Modules, each with what it is:

    write       writes cluster and message files, makes them durable
    cleanup     marks finished lines, removes clusters without a live line
    apply       moves entries from the memtable to the cluster index, in slices
    run         when a checkpoint begins, its steps, its commit record
"""
