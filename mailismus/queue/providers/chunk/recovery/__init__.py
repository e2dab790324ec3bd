"""A start: what is found, and what a crash left. Everything blocks.

Modules, each with what it is:

    directories  the directories of a queue: made, checked, and their number of parts
    found        what the names and files say: messages, numbers that are over, what is damaged
    abandoned    what writers left that do not live any more
    found_new    what writers in other processes did to a running queue
    problems     what is damaged is told, and kept
    due_times    the file that tells which messages a start reads first: written, and read
    scan         messages, and what a crash left, read while the server works
    opening      opens a queue: locks, mark, names, epoch
"""
