"""Checks of files that every provider on local files has: names, segments, message files, state files.

The kinds of findings are the provider's own (`target.Checking.kinds`): the checks here find them there by their names.

Modules, leaves first:

    kinds         findings that providers have alike: a table
    one_byte      the one wrong byte that a CRC tells. Pure
    patches       right bytes laid over a file while it is checked
    actions       what repairs do to files
    problems      faults that any executor mends
    target        what is checked
    names         kind, owner and mode of names
    state_files   what a server remembers from one run to the next
    segment_repair  the wrong byte of a header or a batch
    segments      what checks of a journal, what can be repaired, what is lost
    message_file  one message file
    report        the report of a check
"""
