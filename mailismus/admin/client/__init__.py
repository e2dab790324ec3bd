"""Sources of a queue for commands.

Modules, each with what it is:

    background  work in a thread of low priority
    source      what commands read: a queue. The interface
    stopped     the files of a stopped queue
    server      the running server
    acting      acts on the running server's queue
"""
