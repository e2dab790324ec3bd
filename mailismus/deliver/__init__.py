"""Delivery: from the queue to mail hosts and maildirs.

Modules, each with what it is:

    queue_seam  the queue manager as delivery uses it
    route       a recipient's route: local, relay, MX, or none. Pure
    job         the recipients of a message for one next hop
    held        how many entries are held, and how many more may be. Pure
    hosts       state of each address and port. Pure
    quirks      known defects of each host. Pure
    capabilities  why a host can't take a message, by its EHLO. Pure
    idle        idle sessions, and which one is closed first. Pure
    limits      how much another server may get at a time, and in a minute. Pure
    schedule    which job goes next, over which connection. Pure
    locator     the hosts of a next hop, in order
    connector   a connection to the host that the schedule chooses
    content     reads a content in pieces, as there is room
    protocol    one session over a socket
    sessions    all sessions: gives them jobs, collects outcomes
    deposit     one message into one maildir
    turns       which local delivery is next. Pure
    hanging     local deliveries that hang. Pure
    file_systems  the file system of each maildir, by the mount table
    watch       finds hanging local deliveries and logs them
    local       deliveries into maildirs
    counters    totals of delivery
    settling    outcomes to the queue and the mail log
    log_line    the `status=` line. Pure
    metrics     metrics of delivery
    task        takes entries, routes them, starts deliveries
"""
