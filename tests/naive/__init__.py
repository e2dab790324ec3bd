"""A deliberately naive queue provider, which no server may use: it shows that the durability proofs can fail.

A file a message, written whole, synced and renamed into place. What a beginner forgets: the name is not synced; deliveries
to some recipients of a message, deferrals and bounces stand in memory alone; a write that fails leaves what it wrote.

    files       the files of the queue
    provider    the queue
    opening     lock, mark, and read what is there
    entry       the provider as the program knows it (`queue.provider`)
    program     `twistd` and `mailismus` with this provider in their table
"""
