"""The playground `mailismus demo`: a server on loopback with next hops of all kinds, some mail, and the live screen.

    command --(pipe)--> keeper: name server, mail hosts, sender of mail, and the server as its child

Modules, leaves first:

    wording    help texts, and what to try. Pure
    manners    what each mail host does. Pure
    letters    the mail that is sent. Pure
    playground its directory, addresses and configuration. Pure
    sink       a mail host that keeps nothing
    names      the name server of the playground
    sender     puts mail into the server
    keeper     the process that has the playground, and removes it
    command    the command
"""
