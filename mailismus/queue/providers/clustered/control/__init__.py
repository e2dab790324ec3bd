"""Control of a running queue: readiness, settlements, admission, results of batches, the clean stop.

Modules, leaves first:

    waiters     Deferreds that fire when an area has entries to take
    ledger      the effect of a settlement on records and indexes
    admission   refuses mail while it could not be committed
    closing     the clean stop
    hasten      shortens waiting times
    commit_results  the steps after a commit became durable, or failed
    batch_results  the steps after a batch became durable, or failed
"""
