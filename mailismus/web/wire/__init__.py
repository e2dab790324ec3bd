"""HTTP, by `twisted.web`.

Modules, each with what it is:

    answer      an answer, and the header fields that every answer has. Pure
    password    whether a request has the password. Pure
    guard       whether a request may be answered. Pure
    channel     connections, with their limits
"""
