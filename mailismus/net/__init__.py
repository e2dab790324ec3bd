"""Sockets: what Twisted does not offer, or offers more slowly.

Modules, each with what it is:

    descriptors     limit of open files of this process
    dispatch        the reactor's loop without a log context for each event
    listen          listening sockets, bound before the reactor runs
    connection      the connection of an accepted client
    accept          from a listening socket to sessions
    peer            the address of a peer: text, literal, group
    send            sends bytes in this turn of the reactor
    close           closes a connection in this turn of the reactor
    tls             TLS of listeners
    channel_binding  bytes that both ends of a TLS connection know
    tls_client      TLS towards other servers
    tls_sessions    sessions towards other servers that may be resumed
"""
