"""Decisions about the outcome of an attempt: what becomes of the entry, and when it is tried again. Pure.

Modules, each with what it is:

    retry       the retry rule
    disposition what the queue does about an outcome
    verdict     what becomes of an entry after an attempt
"""
