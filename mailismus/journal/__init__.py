"""The journal: the write-ahead log of a queue. Many messages share one barrier.

Modules, each with what it is:

    frame       records with marks in a batch. Pure
    batch       segment headers and batches as bytes. Pure
    segment     one journal file: created, used, used again
    pool        free segments, created ahead
    writer      one batch, one write, one barrier; in the journal's thread
    spool_ids   ids that are never used twice
    commit      group commit: gathers items into batches, tells each item its result
    replay      which batches of the segments found are valid, in order
    load        replay into the state of a provider, in two passes
    build       a new journal that nobody uses yet, written without a barrier
    opening     how a start goes on with the journal that it replayed: its own barrier
    lenient     reads a journal of which some segments can't be read
    throttle    delays 250s while the journal is longer than `maxsize`
    pressure    refuses mail while a message would wait too long for the disk
    batch_events  tells a listener that is made later how batches ended
    refusals    errors of the journal as reasons for clients
"""
