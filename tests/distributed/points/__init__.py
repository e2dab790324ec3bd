"""Crash points of the shared queue: each call of a server to a store, with each fate, beside a second server.

    workload, run once -> its calls -> a state for each call and fate -> run again, until all is over -> what must hold

Modules, bottom first:

    point       which call, which fate, and whether the server is killed there
    watch       sees the calls of a server, and gives one its fate
    ledger      what was promised, and what became of it
    settlements what administrators make of an entry
    user        who delivers and reports for one server
    trial       two servers, their users, and their time
    behind      what is left in the stores when all is over
    workloads   the operations, by name
    explorer    all states of a workload
"""
