"""The indexes of the clustered queue in memory. Pure.

Modules, each with what it is:

    memtable        messages and entries whose durable copy is in the journal
    packed_line     a line as bytes, while it waits
    waiting_lines   lines of a cluster that are in memory until they are due
    cluster         one cluster file
    held_clusters   clusters with lines that were held back, by sender
    cluster_index   all cluster files, and their entries that are out
    state           state that the parts share: both indexes, the checkpoint under way, the clock
"""
