"""Bytes on disk. Pure. Described in `docs/formats`.

Modules, each with what it is:

    version     name and format as the mark of a queue says them
    slots       names of the directories below `deferred/`, by due time
    cluster     the cluster file: header, recipient lines, places
    record      what a journal batch says
"""
