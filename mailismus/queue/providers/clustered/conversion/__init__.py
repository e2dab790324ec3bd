"""A clustered queue as the source and as the result of a conversion.

Modules, each with what it is:

    source      all entries and contents of a stopped queue, one after the other
    build       a new queue from messages of another one: clusters, message files, a journal of two batches
"""
