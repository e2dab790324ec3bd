"""What is in memory of the log: envelopes, messages with their entries, what keeps segments. Pure.

Modules, leaves first:

    amount      what a count must know of entries that rest
    envelope    one envelope: its places, and how far work on it has come
    working_set messages with their entries
    id_marks    bytes of the ids of what rests in a piece
    piece       a stretch of one segment, and what is known of what rests there
    resting     envelopes that are in the log alone, by pieces of it
    rest_counts what a count of them need not read
    search_holds  which segments searches have still to come to
    holds       which segments are needed, for how many envelopes and bytes
    garbage     which segments are emptied, and when
"""
