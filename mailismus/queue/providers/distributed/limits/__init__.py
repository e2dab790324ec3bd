"""Limits over all servers: which part of each this server has.

    row         what all servers know of one limit, as a cell of the database. Pure
    cutting     how a limit is cut: what a server asks for, and gives back. Pure
    part        one part in memory, as delivery asks for it
    keeping     asks the database for parts, and gives them back

*Not here*: what uses a limit (`deliver.limits`).
"""
