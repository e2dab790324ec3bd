"""Acts on a stopped queue: a command opens it under its lock, acts, and closes it.

Modules:

    stopped     requests about acts, answered without a server
"""
