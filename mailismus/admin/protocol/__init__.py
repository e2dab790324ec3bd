"""The protocol of the admin socket.

Modules, each with what it is:

    fields          values of JSON, checked. Pure
    wire            requests and answers as lines of JSON. Pure
    injecting       a message of a program as lines of JSON
    overview        the figures of the server as one line. Pure
    habits          what receivers did lately, as lines. Pure
    servers         servers of a shared queue, a line each. Pure
    acting          acts on the queue as lines of JSON. Pure
    settings        effective values as lines of JSON. Pure
    socket_file     the socket in the file system: bind, connect
"""
