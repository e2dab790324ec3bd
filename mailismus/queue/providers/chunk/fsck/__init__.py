"""Check and repair of a stopped queue of chunks, within the frame of every fsck (`queue.fsck.frame`).

Modules, each with what it is:

    kinds     the table of findings
    executor  what repairs do: files written anew, numbers given again
    numbers   names and states: copied queues, parts, numbers without a legal state
    lines     envelopes, files of recipients and info
    look      one look at a queue: all problems, in their order
    check     the check, which changes nothing
    repair    the repair, a start and a clean stop, and a second check
"""
