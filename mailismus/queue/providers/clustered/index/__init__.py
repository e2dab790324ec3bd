"""What the clustered queue keeps in memory. Pure.

Modules, each with what it is:

    memtable        messages and entries whose durable copy is in the journal
    waiting_lines   lines of a cluster that are in memory until they are due
    cluster         one cluster file
    cluster_index   cluster files, and the entries of them that are out
    state           what the parts share: both indexes, the checkpoint under way, the clock
"""
