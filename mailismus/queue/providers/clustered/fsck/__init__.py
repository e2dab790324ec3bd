"""Checks a stopped queue, and repairs it.

Rooms, bottom first:

    evidence    what else is known: journal history, live entries, the one byte that may be wrong
    repairs     actions that change the disk, each safe to be interrupted
    findings    what is wrong with names, segments, clusters and message files

The module:

    check       runs all of it
"""
