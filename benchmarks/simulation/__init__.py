"""The simulation: the delivery task as it is, on a virtual clock, between simulated receivers. docs/simulation.md.

    mail -> queue -> the delivery task -> sessions -> receivers
                        |
                        v
                     the books -> measures -> summaries -> tables, drawings

Modules, leaves first:

    clock       virtual time: a heap of events
    receivers   sites of mail hosts, and connections to them
    names       look-ups and maildirs that take their time
    waiting     the queue: the real index of due entries and retry rule, without a disk
    books       what is noted of each outcome
    measures    percentiles, fairness
    run         one run
    worlds      receivers and mail by a seed: the large world
    cases       the named cases
    rivals      two plain schedules to compare with
    summary     the figures of a run
    drawing     SVG
    decisions   the time of a decision by the number of connections

`python -m benchmarks.simulation` is the program.
"""
