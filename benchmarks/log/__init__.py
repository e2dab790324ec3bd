"""One log-structured queue in a process of its own, with this or that choice: what `log_choices` measures.

The modules, leaves first:

    plan        the questions and their choices, as values (pure)
    positions   positions in the log, in place of a file of their own
    bench       a queue with a choice, opened as the server does it
    mail        new mail in a closed loop, delivered at once
    backlog     a backlog that is delivered while no mail comes
    retries     hours of deferrals on a virtual clock
    point       the program: one point

Real files and threads, no server and no sockets.
"""
