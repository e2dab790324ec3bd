"""Index of due and out entries, for every provider that has its entries in memory. Pure.

Modules, each with what it is:

    passed_over   lines of senders that were passed over in a take
    entries       entries by area: ready, waiting for their time, out
    index         `DueIndex`: also gives back, hastens and counts
"""
