"""What the clustered queue writes into its journal.

Modules, each with what it is:

    items       commits, rewritten messages, checkpoints as items of group commit
    spool_ids   ids that are never used twice
"""
