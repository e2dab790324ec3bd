"""Opening a log-structured queue.

Modules, leaves first:

    replay      the working suffix: which envelopes work was going on
    envelopes   live envelopes of a segment
    found       what a start finds: messages and garbage
    opening     directories, locks, the log, the start's own barrier
"""
