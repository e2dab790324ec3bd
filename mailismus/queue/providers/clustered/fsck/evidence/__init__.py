"""What fsck knows beside the file it looks at.

Modules, each with what it is:

    target          which directories are checked
    history         what the journal still holds
    live_entries    live entries as flat arrays, by silo
    one_byte        which one byte a wrong CRC-32 points to. Pure
    bad_lines       lines of a cluster that do not check. Pure
    patches         changed bytes, read through before they are written
    segment_repair  the bytes that repair a segment
"""
