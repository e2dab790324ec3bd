"""Acts of administrators on the queue: hold, release, delete, bounce, redirect, rules for mail to come, and their undoing.

    order -> begin durable -> slices: claim, settle, count -> entries that were out: when they come back -> done -> undo

Modules, leaves first:

    act         an act as an object, its states. Pure
    marking     marks of acts on an entry. Pure
    decide      what an act makes of one entry. Pure
    lines       lines of the mail log. Pure
    counted     which messages were counted. Pure
    rule        a rule for mail to come
    record      lines of the file of acts. Pure
    act_file    the file of acts
    keeping     ends of holds and of what is kept, by time
    rules       the rules in force
    run         one pass of an act over the queue, slice by slice
    acts        all acts of one queue
"""
