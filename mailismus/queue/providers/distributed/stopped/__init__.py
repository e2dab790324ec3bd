"""The queue without its server: a command asks the stores, and changes nothing.

Modules:

    alone   the lease of a command that needs the queue for itself
    look    the parts of a queue that read, over an empty hand
    queue   `IStoppedQueue`
"""
