"""Delivery: from the queue to mail hosts, and to maildirs or an LMTP server.

    queue -> taking -> distribution -> jobs -> schedule -> sessions ----> settling -> queue
                          |  ^                    ^                          ^
                        routes                 knowledge                     |
                          +-----------------------------------> local -------+

What is in it, each with what is below it before it; rooms have maps of their own:

    mailboxes   the names under which an LMTP server knows our users. Pure
    limits      a room: how much another server may get at a time, and in a minute. Pure
    security    a room: what a host must show before it gets mail. Pure
    routes      a room: where a recipient's mail goes
    log_line    the `status=` line. Pure
    jobs        a room: what is to be delivered together, and how much of it may be in hand
    knowledge   a room: what is known of receivers
    schedule    a room: which job goes over which connection, and when. Pure
    counters    totals of delivery
    queue_seam  the queue manager as delivery uses it
    context     reactor, clocks, threads and chance
    settling    outcomes to the queue and the mail log
    giving_back  jobs that leave delivery, and which go back to the queue untried
    lookups     the look-ups under way, for the schedule
    authentication  a room: credentials for relays, what a session shows, and what follows where they are not accepted
    sessions    a room: sessions with mail hosts
    local       a room: deliveries into maildirs
    why         a room: why mail waits, in reasons, sentences, counters, log records
    real_context  reactor, clocks, threads and chance of a running server
    distribution  makes jobs of what was taken
    taking      takes entries as room allows, those of each area by themselves
    metrics     metrics of delivery
    task        wires delivery, and watches over it
"""
