"""The history of the last day.

Modules, each with what it is:

    samples     figures of a minute, as values and as lines of a state file. Pure
    recorder    takes a sample each minute, and keeps the samples in a state file
"""
