"""Message files in 32 silo directories.

Modules, each with what it is:

    silo            directory and names of a message file. Pure
    message_file    one message file: written, read, checked, removed
    listing         all message files of a spool, by their names
    content         the bytes of a stored message, in pieces
    budget          a limit in bytes that several objects share. Pure
    stream          a large draft on its way to its message file
    draft           a message while it arrives: in memory, or streamed into its silo
    quarantine      puts damaged files and bytes into quarantine
    link_probe      tries whether the file system has hard links
    idtable         64-bit ids to small counts, in flat arrays. Pure
    references      reference cache: live entries of each message, in bounded memory. Pure
    unsure          messages whose count is not known until the next reference scan. Pure
    sweep           removes message files that no entry needs
    removal         removes message files in a worker
    reference_scan  reads every line of the queue to learn which messages are referenced
    release         removes message files after their last entry
"""
