"""The simulation: the delivery task as it is, on a virtual clock, between simulated receivers. docs/simulation.md.

    mail -> queue -> the delivery task -> sessions -> receivers
                        |
                        v
                     the books -> measures -> summaries -> tables, drawings

Clock, receivers, names and queue are those of the forecast (`mailismus.plan`). Modules, leaves first:

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
