"""Check and repair of the shared queue: rows, marks, index, contents, triggers and due rows are compared with each other.

Modules, each with what it is:

    kinds       the table of findings
    fault       a finding with its repair
    alone       no server serves the queue meanwhile
    waiting     what brings shares back: triggers, and due rows
    repairs     what repairs do: rows beside those that are there, triggers, contents
    numbers     epochs and starts
    shares      one share: its marks, its origin, its index row, its content, what brings it back
    contents    objects, and whose they are
    walk        one look at a queue: all faults, in their order
    report      the check, which changes nothing of the mail, and the repair
"""
