"""Counts and shapes of a queue. Pure.

Modules, each with what it is:

    tally   counts by area
    shape   counts by domain, host or sender, and by age
    left_out    the sentence about entries that could not be read
    noted       an entry of which the server said why it waits
"""
