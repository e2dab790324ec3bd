"""Reading the log beside all other work: contents, searches and counts.

Modules, each with what it is:

    envelopes   envelopes of a segment, batch by batch
    damage      bytes that do not check: quarantined, and named
    outline     of an envelope, what must be known while it rests
    pieces      all envelopes of a piece, or their outlines
    visit       every envelope that rests is looked at
    planned_count  counting by a plan, in another process
    count_plan  the plan for it
    content     contents of messages, from memory, the log, or the spool
    looking     counts and pages of entries. Pure
    lines       what refers to message files, for their release
"""
