"""Non-delivery reports to senders (RFC 3464, RFC 6522).

Modules, each with what it is:

    queue_seam          the queue manager as reporting uses it
    wording             the cause of a failure, and sentences about it. Pure
    verdict             replies that this server made itself, as senders read them. Pure
    notice              the part for a person. Pure
    delivery_status     the part for programs. Pure
    excerpt             the part that returns the message. Pure
    compose             the whole report. Pure
    pause               how long what failed is left alone. Pure
    task                takes bounces, writes reports
    metrics             metrics of reporting
"""
