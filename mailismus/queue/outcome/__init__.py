"""Decisions about the outcome of an attempt: the end of an entry, or the time of its next attempt. Pure.

Modules, each with what it is:

    retry       the retry rule
    disposition the queue's decision about an outcome
    history     what the word `tries` says of an outcome
    verdict     makes that decision after a failed attempt
"""
