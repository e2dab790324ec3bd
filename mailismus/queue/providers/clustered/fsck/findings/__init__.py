"""What fsck finds.

Modules, each with what it is:

    kinds           the table of findings: severity, meaning, repair
    names           directories and files: which belong there, and whose they are
    state_files     what a server remembers from one run to the next
    segments        the journal
    cluster_names   which files in the areas are clusters
    clusters        the lines of clusters
    message_file    one message file
    spool           entries without a message, messages without an entry
"""
