"""A queue of chunks as the source and as the result of a conversion.

Modules, each with what it is:

    source      all messages and contents of a stopped queue, one after the other
    build       a new queue from messages of another one
"""
