"""From files to a queue: what a start reads, checks and makes durable before anything else.

Modules, each with what it is:

    cluster_files   which cluster files exist
    newer_formats   refuses clusters that a newer program wrote
    directories     checked, and made where they are missing
    replay          journal records to live entries
    salvage         lines of a checkpoint whose record is damaged
    clusters        index of the clusters that count
    journal         the journal of a queue that is being opened
    opened          an open queue as a value
    opening         locks, journal, clusters: the whole start
    stopped_contents  contents of messages of a stopped queue
    offline         reads a queue that no server runs on; changes nothing
"""
