"""Checks a stopped log-structured queue, and repairs it.

Modules, leaves first:

    kinds        the table of findings: severity, meaning, repair
    executor     actions that write to the log, and what is put off to the end
    positions    the file of positions
    segments     batches below the working suffix, which a replay does not read
    envelopes    live envelopes: marks, entries that are live twice, contents
    spool        message files of live envelopes, and those of none
    look         all problems of a queue, step by step
    clean_stop   the start and the stop that end a repair
    check        a check, which changes nothing
    repair       a repair
"""
