"""Delivery: from the queue to mail hosts, and to maildirs or an LMTP server.

Modules, each with what it is:

    queue_seam  the queue manager as delivery uses it
    context     reactor, clocks, threads and chance
    security    what a host must show before it gets mail. Pure
    mailboxes   the names under which an LMTP server knows our users. Pure
    route       a recipient's route: local, LMTP, relay, MX, or none. Pure
    concurrency  how many workers have a job of a message. Pure
    conversion  8-bit messages as 7-bit content: what is measured, remembered, converted on its way
    job         the recipients of a message for one next hop
    room        the share of the room that a sender or a next hop may hold. Pure
    held        how many entries are held, in all and of each sender, and how many more may be. Pure
    host_records  what is known of a host, to be kept or shared. Pure
    host_sharing  shares deaths of hosts among the servers of a queue
    host_snapshot  keeps the records of hosts from one run to the next
    quirks      known defects of each host. Pure
    blame       what a failure says about recipient, message, host or MX set. Pure
    capabilities  why a host can't take a message, by its EHLO. Pure
    smtputf8    messages that need SMTPUTF8, and what a host without it gets of them. Pure
    limits      how much another server may get at a time, and in a minute. Pure
    schedule    which job goes over which connection, and when; what is known of hosts. Pure
    authentication  credentials for relays: what a session shows, and what follows where they are not accepted
    tls_clients  TLS for sessions: contexts, sessions that are resumed
    misses      sessions that missed TLS: what follows, logged and counted
    locator     the hosts of a next hop, by preference
    assembly    the locator of a configuration, with the resolvers that it asks
    lookups     the look-ups under way, for the schedule
    host_session  one session over a socket, without mail: deadlines, TLS, credentials
    connector   makes the connection of a session, and says why there is none
    content     reads a content in pieces, as there is room
    protocol    a session that takes mail, one job after another
    lmtp_session  a session with an LMTP server: one outcome a recipient
    giving_back  jobs that leave delivery, and which go back to the queue untried
    verdicts    what follows when a transaction or a session has ended
    sessions    all sessions: carries out what the schedule decides
    deposit     one message into one maildir
    turns       which local delivery is next, by sender, message and user. Pure
    pace        how many local deliveries at a time the disk serves well. Pure
    hanging     local deliveries that hang. Pure
    file_systems  the file system of each maildir, by the mount table
    watch       finds hanging local deliveries and logs them
    local       deliveries into maildirs
    counters    totals of delivery
    in_use      bounded records, of which those in use are kept. Pure
    hop_habits  what one next hop did lately. Pure
    recent      totals and habits of each next hop, and the last failures. Pure
    habits      what receivers did lately, hosts too. Pure
    settling    outcomes to the queue and the mail log
    log_line    the `status=` line. Pure
    why         why mail waits: reasons, sentences, counters, log records
    metrics     metrics of delivery
    distribution  makes jobs of what was taken
    taking      takes entries as room allows, those of each area by themselves
    task        wires delivery, and watches over it
"""
