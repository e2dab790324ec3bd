"""What a running queue does beside reading and checkpoints.

Modules, leaves first:

    waiters     Deferreds that fire when an area has something to take
    ledger      what a settlement does to records and indexes
    admission   refuses mail while it could not be committed
    closing     what a clean stop writes
    hasten      shortens how long entries wait
    batch_results  what follows when a batch is durable, or failed
"""
