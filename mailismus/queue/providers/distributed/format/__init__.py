"""What the shared queue writes: tables, slices and buckets, triggers. Pure.

Modules:

    version     name and format of the provider, and its directories
    tables      the tables of the keyspace, and the queues of the broker
    slices      in which partition a row stands, by its time and its message
    trigger     the message in the broker
    share       what one commit puts into one area, as values and as rows
    names       names of shares for people
    marks       what has become of the entries of a share
    due         which share is to be published at a time
    ids         ids of shares, which ascend with time
    batches     which writes may come as one
"""
