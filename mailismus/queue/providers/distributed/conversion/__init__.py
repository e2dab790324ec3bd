"""Conversion to and from the other providers, without any server.

Modules:

    asking      a call is repeated until it is answered
    living      all that lives, share by share
    shutting    shuts the gate for servers
    emptying    removes all mail
    source      an `IQueueSource`: all of the queue, for another provider
    build       an `IQueueBuilder`: mail of another provider
    ends        the end of a conversion: done, given up, forgotten
"""
