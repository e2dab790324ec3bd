"""Sockets, beside what Twisted does.

Modules, each with what it is:

    descriptors     how many files this process may open
    dispatch        the reactor's loop without a log context for each event
    listen          listening sockets, bound before the reactor runs
    accept          from a listening socket to sessions
    peer            the address of a peer: text, literal, group
    send            bytes to the kernel in this turn of the reactor
    close           a connection closed in this turn of the reactor
    tls             TLS of listeners
"""
