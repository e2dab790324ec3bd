"""`IRows` by Cassandra 4.1 or later, with the driver of Apache in a thread of its own.

Everything is read and written at LOCAL_QUORUM, compare and set at LOCAL_SERIAL. Modules, bottom first:

    statements  the words of CQL. Pure
    refusals    why no connection was made, in words. Pure
    asking      one statement, asked of a node, and of another one where that fails
    session     the driver: connected by a thread, its answers in the reactor's thread
    client      `CassandraRows`
"""
