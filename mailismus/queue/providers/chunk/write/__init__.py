"""What changes the files of the queue. Everything but `ways` blocks, and runs in a worker.

Modules, each with what it is:

    directories  the open directories of a queue
    ways         pure: which way makes a barrier durable, by what the ways have cost
    barrier      files and directories that are made durable together
    syncing      makes barriers durable in the way that costs least
    born         the numbers of files that this run has made
    mess         the content of a message while it arrives: S1 and S2
    epochs       epochs of spool ids: a file for each, made by one process alone
    marks        lines of recipients are marked done
    anew         files of a message take the places of its old ones, in steps
    cleaning     names that no state needs go
    batch        a batch: what is made, what commits it, what goes
    ends         what only ends entries, made durable beside the batches
"""
