"""When the bytes of a message are removed.

Modules, each with what it is:

    reference_scan  reads every line of the queue to learn which messages are referenced
    release         removes message files after their last entry
"""
