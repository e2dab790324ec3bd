"""From files to a queue: what a start reads, checks and makes durable before anything else.

Modules, each with what it is:

    cluster_files   which cluster files exist
    newer_formats   refuses clusters that a newer program wrote
    ownership       refuses the directory of another provider
    replay          journal records to live entries
    salvage         lines of a checkpoint whose record is damaged
    missing_journal refuses to start without any trace of a journal
    opening         directories, locks, replay, the start's own barrier
    offline         reads a queue that no server runs on; changes nothing
"""
