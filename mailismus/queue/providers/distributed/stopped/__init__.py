"""The queue without its server: a command asks the stores, and changes nothing.

Modules:

    look    the parts of a queue that read, over an empty hand
    queue   `IStoppedQueue`
"""
