"""Injection: a program of this machine puts one message into the queue. The command `mailismus inject`.

    stdin -> the engine and reception of SMTP -> the queue's own files, beside its server   (providers that allow it)
    stdin -> admin socket -> the same in the running server                                 (all others)

Modules, leaves first:

    kept      a message that is kept here until all of it has come
    beside    in this process, over what a provider opens for writers
    wording   help texts. Pure
    run       from the words of the command line to the message's id
    command   the command line
"""
