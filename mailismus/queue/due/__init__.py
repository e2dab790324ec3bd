"""Index of due and out entries, for every provider that has its entries in memory. Pure.

Modules, each with what it is:

    index       entries by area: ready, waiting for their time, out
"""
