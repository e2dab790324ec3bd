"""Opening a log-structured queue.

Modules, leaves first:

    free_segments  segments that are free, and those that were being begun anew at a crash
    replay      the working suffix: which envelopes work was going on
    denied      former copies of the last batch, and what a barrier failed for: marked before anything else
    found       what a start finds: work that was going on, garbage, and what it has not read yet
    positions_file  the file of positions, written durably
    opening     directories, locks, the log, the start's own barrier
    offline     a queue that no server runs on, opened for reading
"""
