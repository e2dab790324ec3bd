"""What the shared queue writes: tables, slices and buckets, triggers. Pure.

Modules:

    tables      the tables of the keyspace, and the queues of the broker
    slices      in which partition a row stands, by its time and its message
    trigger     the message in the broker
    share       what one commit puts into one area, as values and as rows
"""
