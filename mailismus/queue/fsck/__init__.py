"""What every provider's fsck is made of. Each provider has its own findings, evidence and repairs.

Modules, leaves first:

    finding     results of fsck as values. Pure
    faults      findings with their repairs, and kinds of findings. Pure
    summary     sums and exit status
    quarantine  copies of the bytes that a repair changes
    files       changes of files by a repair
    locks       locks of a queue that is checked or repaired
    refusals    what no repair is begun on
    turns       a clock and a worker for a queue without a reactor
    frame       the steps of a check and of a repair
    local       checks of files that every provider on local files has
"""
