"""Commits: what the clustered queue writes into its journal.

Modules, each with what it is:

    items         commits, rewritten messages, checkpoints as items of group commit
    batch_events  tells a listener that is made later how batches ended
"""
