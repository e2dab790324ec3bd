"""Reading the clustered queue.

Modules, each with what it is:

    cluster_file    the bytes of a cluster file
    due_scan        reads clusters that have due entries, hands those out
    cluster_reader  reads clusters; tells a missing one from an unreadable one
    content         the bytes of a message
    counting        counts of live lines. Pure
    count_plan      what another process needs to count. Pure
    planned_count   counting by that plan
    search          pages of entries that match a filter
"""
