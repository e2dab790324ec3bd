"""Commits: what the clustered queue writes into its journal.

Modules, each with what it is:

    items         commits, rewritten messages, checkpoints as items of group commit
"""
