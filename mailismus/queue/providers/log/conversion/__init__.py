"""A log-structured queue as the source and as the result of a conversion.

Modules, each with what it is:

    source      all live envelopes and contents of a stopped log, one after the other
    build       a new log from messages of another queue
"""
