"""Acts on the queue: how they are put together; and on a stopped queue, which a command opens under its lock and closes.

Modules:

    assembly    the acts of an open queue
    stopped     requests about acts, answered without a server
"""
