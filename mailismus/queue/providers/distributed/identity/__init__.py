"""Names of messages and of the server: epochs that no other server has, the ids of one of them, what an epoch has.

Modules:

    agreements  what all servers use, and must have in common
    epochs      an epoch is claimed by compare and set
    spool_ids   the ids of one server
    lease       which epochs are those of servers that run
    claims      which of them has a share
    tasks       what one server does at a time
    gate        whether a conversion shuts servers out
    clock       how far this server's clock is from the database's
    notes       what a server tells of itself, and what is known of all
"""
