"""Benchmarks and whole-server trials: real processes, real sockets, real files. How to run them: docs/benchmarks.md.

The modules here are the programs. Their rooms:

    clients     generators of load, each a program
    sinks       next hops, each a program
    stage       where it happens: directories, servers under test, load, a running server, the servers of a comparison
    measure     what is counted or timed, and reading what tools write: costs, barriers, profiles and budget, calls,
                instructions, system calls, copies and passes; programs that count inside a server or alone
    results     values, verdicts and tables (pure)
    log         one log-structured queue in a process of its own, with a choice
    ours, postfix   configurations

`measure` and `stage` use each other's modules; `results` uses neither.
"""
