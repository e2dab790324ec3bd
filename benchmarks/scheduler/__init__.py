"""Loads on the scheduler of deliveries, on real sockets: `python -m benchmarks.scheduler`; see docs/harnesses.md.

Modules, leaves first:

    events      what the sink and the name server write down, and what follows from it (pure)
    checks      verdicts: values beside their limits (pure)
    world       hosts and domains: behaviour by address, the zone of the name server (pure)
    sink        the next hops, one process: `python -m benchmarks.scheduler.sink`
    names       the name server, one process: `python -m benchmarks.scheduler.names`
    client      the client that sends the load
    bed         the server with its sink and its name server
    cases       all loads by name

The loads, each with its measurement and its verdict:

    sick        slow, silent, refusing and throttling hosts beside healthy ones
    beside      small messages beside one large load: slow hosts, a tarpit, silent name servers, local users
    envelope    one envelope, and a second one, of 50,000 recipients
    caps        domains that share a host; a host with a cap; a rate by the minute
    pipelining  one kept connection at a distance
    killed      hosts that were dead before a `kill -9`
"""
