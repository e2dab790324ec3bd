"""What a message of the shared queue costs its services and us, and what a site of many messages needs by that.

    python -m benchmarks.distributed                          # see docs/benchmarks

calls       which calls a connection with a service carries, from its bytes. Pure
front       ports before the services, where all that passes is counted
sink        the next hop
figures     what one message costs, against the aims. Pure
parts       which part of the program a sample of a profile belongs to. Pure
services    processor time and disk of the services
bed         servers over the services, and their instruments
run         one load on one or two servers
prices      single calls, without a queue
large       a queue with many deferred entries
cleaning    the clean-up of a queue, by clocks that are ahead
kept        what was measured, in a file
scale       what a site needs, computed from that. Pure
page        `docs/distributed-scale.md`, made from that
"""
