"""Non-delivery reports (RFC 3464, RFC 6522).

Modules, each with what it is:

    queue_seam          what reporting needs of the queue manager
    wording             a cause in words, by the reply. Pure
    notice              the part for a person. Pure
    delivery_status     the part for programs. Pure
    excerpt             the part that returns the message. Pure
    compose             the whole report. Pure
    task                takes bounces, writes reports
    metrics             metrics of reporting
"""
