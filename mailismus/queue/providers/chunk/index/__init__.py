"""What is known in memory of the messages of the queue. Pure.

Modules, each with what it is:

    known        one message: its entries, its state, where the line of each recipient is
    changes      what a settlement makes of a message's files
    rows         messages that rest: a packed row for each, found by spool id
    plain        the row of a message of which nothing is to be told
    due_buckets  rows by the time at which they are due
    adjustments  flushes and clocks that were set back, for times that are in files alone
    resting      all messages that rest
"""
