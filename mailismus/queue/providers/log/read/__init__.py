"""Reading the log beside all other work: contents, searches and counts.

Modules, each with what it is:

    envelopes   envelopes of a segment, batch by batch
    skim        records of batches without their contents
    damage      bytes of a segment that do not check
    quarantine  of these bytes
    seen        envelopes without their contents, for looks
    live_count  counts of live envelopes, from heads and lines alone
    outline     of an envelope, what must be known while it rests
    pieces      all envelopes of a piece, or their outlines
    visit       a visit to every envelope that rests
    planned_count  counting by a plan, in another process
    count_plan  the plan for it
    content     contents of messages, from memory, the log, or the spool
    looking     counts and pages of entries. Pure
    lines       what refers to message files, for their release
"""
