"""Servers of one shared queue in trouble, on the real services: what `python -m tests.durability.harness.fleet` is made of.

wires       each server in a network of its own, whose connections with the services can be cut
sink        the next hop of a server
bed         the servers, their generators and next hops
trouble     kinds of trouble, and what each excuses. Pure
verdict     what became of the messages. Pure
round       load, a row of troubles, drain, judgement
limited     a next hop with a limit, for all servers
limits      what several servers do to one host with a limit
faulty      servers that must lose or double
"""
