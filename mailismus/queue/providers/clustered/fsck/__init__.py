"""Checks a stopped queue, and repairs it.

Rooms, bottom first:

    evidence    what else is known: journal history, live entries, the one byte that may be wrong
    repairs     actions that change the disk, each safe to be interrupted
    findings    what is wrong with names, segments, clusters and message files

The modules, leaves first:

    look        all problems of a queue, step by step
    refusals    what neither is begun on
    check       a check, which changes nothing
    repair      a repair
"""
