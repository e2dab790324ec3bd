"""Reading.

Modules, each with what it is:

    content  contents of messages: those of new ones at hand, all others from their files
    messages messages that rest
    looking  search, counts and flushes
    offline  a queue that no server runs on
"""
