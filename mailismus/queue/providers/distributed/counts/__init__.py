"""Counts: what each server has added to each slice, so that a count reads as many rows as there are slices and servers.

Modules:

    numbers     how a commit changes the counts of slices. Pure
    stored      the rows of counts, and their sum
    keeping     the counts of one server, and what it has under way
"""
