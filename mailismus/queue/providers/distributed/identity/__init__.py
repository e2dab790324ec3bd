"""Names of messages: epochs that no other server has, and the ids of one of them.

Modules:

    epochs      an epoch is claimed by compare and set
"""
