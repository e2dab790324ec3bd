"""SMTP reception: from a client into the queue.

Modules, bottom first:

    policy      who may send mail to whom, as replies. Pure
    ending      why a session ends, its last reply and its log line. Pure
    admission   which clients may connect. Pure
    recipients  the recipients of a transaction: one entry per mailbox
    seam        interface: what reception needs of the queue manager
    reception   one transaction: envelope, content, commit, 250
    lines       a message as a program writes it becomes content as on the wire. Pure
    injection   one message of a program of this machine, by the same rules
    terms       interface: what a session needs of its listener
    protocol    one session on a socket: reading, time-outs, closing
    sessions    the sessions of one listener
    task        the listeners, from binding to stop
    metrics     metrics per listener
"""
