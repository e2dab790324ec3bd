"""What fsck finds, beside the checks of every provider (`queue.fsck.local`).

Modules, each with what it is:

    kinds           the table of findings: severity, meaning, repair
    cluster_names   which files in the areas are clusters
    clusters        the lines of clusters
    spool           entries without a message, messages without an entry
"""
