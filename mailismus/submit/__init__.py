"""SMTP reception: from a client into the queue.

Modules, each with what it is:

    admission   who may connect. Pure
    policy      who may send what to whom, as replies. Pure
    recipients  the recipients of a transaction: one entry for a mailbox
    ending      why a session ends, and what is said and logged then. Pure
    terms       what a session asks of its listener
    seam        what reception needs of the queue manager
    reception   one transaction: envelope, content, commit, 250
    protocol    one session over a socket: reading, timeouts, closing
    sessions    the sessions of one listener
    task        the listeners, from binding to stop
    metrics     metrics by listener
"""
