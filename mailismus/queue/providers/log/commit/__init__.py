"""Commits: what the log-structured queue writes into its log.

Modules, each with what it is:

    items       new messages, settlements, moved envelopes as items of group commit
    messages    from a submission to its message
    asked       records of settlements
"""
