"""What fsck knows beside the file it looks at.

Modules, each with what it is:

    history         what the journal still holds
    live_entries    live entries as flat arrays, by silo
    bad_lines       lines of a cluster that do not check. Pure
"""
