"""Commits: what the clustered queue writes into its journal.

Modules, each with what it is:

    items         commits, rewritten messages, checkpoints as items of group commit
    spool_ids     ids that are never used twice
    batch_events  tells a listener that is made later how batches ended
"""
