"""What happens when: drafts, group commit, results. In the reactor's thread.

Modules, each with what it is:

    drafts     messages while they arrive
    names      spool ids of an epoch, and the next epoch in time
    ledger     what a batch that has ended makes of the index, and which messages rest
    loading    messages that rest are read when they are due or settled
    workers    the workers of one queue
    soon       a call that is made once, at the earliest of several times
    work       group commit: what goes with the next batch, or only ends entries, and when it begins
    requests   from the request of a caller to messages and changes of a batch
    adoption   messages of writers in other processes
    upkeep     preprocesses messages that stay
    due_times  which messages the next start may read last
    scanning   the scan of a start, while mail comes and goes
    admission  refuses mail that could not be committed
"""
