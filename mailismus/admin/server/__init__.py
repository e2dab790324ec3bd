"""The admin task of the running server.

Modules, each with what it is:

    answers     one answer for each verb, in parts
    admission   requests that are answered at the same time
    session     one connection: request, answer
    task        the listening socket
"""
