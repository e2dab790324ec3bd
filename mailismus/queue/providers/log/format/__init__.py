"""Bytes of the log-structured queue on disk. Pure.

Modules, each with what it is:

    version     name and formats of the provider
    record      records of a batch
    positions   where a start begins to read
"""
