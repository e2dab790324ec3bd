"""Names of messages and of the server: epochs that no other server has, the ids of one of them, the lease of the queue.

Modules:

    epochs      an epoch is claimed by compare and set
    spool_ids   the ids of one server
    lease       one server at a time serves the queue
"""
