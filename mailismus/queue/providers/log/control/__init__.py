"""Control of a running queue: settlements, results of batches, rounds of marks, admission, the clean stop.

Modules, leaves first:

    choices     what was measured and could be otherwise
    waiters     Deferreds that fire when an area has entries to take
    segments    segments in use, those that have failed, and freeing
    ledger      the effect of a commit on records and the working set
    results     the steps after a commit became durable, or failed
    admission   refuses mail while it could not be committed
    piece_reading  reads pieces: loads what is wanted, learns the earliest due times of the rest
    giving_way  pauses of work that nobody waits for
    visits      looks at every resting envelope
    flushing    makes deferred entries due now
    learning    reads what a start does not know yet
    loading     reads resting envelopes when they are due, or asked for
    claiming    hands out what matches, whatever its time
    moves       writes envelopes of failed segments, and of those that are emptied, again
    compaction  empties segments in which little lives
    rounds      rounds of marks: starts, marks, positions, free segments
    closing     the clean stop
"""
