"""Sources of a queue for commands.

Modules, each with what it is:

    background  work in a thread of low priority
    source      the running server, or the files of a stopped queue
    acting      acts on the running server's queue
"""
