"""Sessions with mail hosts, from the connection to what follows when they end.

Modules, leaves first:

    capabilities  why a host can't take a message, by its EHLO. Pure
    tls_clients   TLS for sessions: contexts, sessions that are resumed
    misses        sessions that missed TLS: what follows, logged and counted
    host_session  one session over a socket, without mail: deadlines, TLS, credentials
    connector     makes the connection of a session, and says why there is none
    content       reads a content in pieces, as there is room
    protocol      a session that takes mail, one job after another
    lmtp_session  a session with an LMTP server: one outcome a recipient
    verdicts      what follows when a transaction or a session has ended
    all_sessions  all of them: carries out what the schedule decides
    parts         follows the parts of limits that hold over all servers
"""
