"""The admin task of the running server.

Modules, each with what it is:

    answers     answers about the queue, in parts
    overview    the answer about the server's figures
    habits      the answer about receivers
    servers     the answer about servers that share the queue
    acting      answers about acts on the queue
    settings    the answer about the configuration
    verbs       which answer a request gets, and what the user wrote
    admission   requests that are answered at the same time
    upload      a message that a program sends
    session     one connection: request, answer
    task        the listening socket
"""
