"""Common parts of queue providers on local files.

Modules, each with what it is:

    recipient_line  one entry as a line of text. Pure
    state_file      what is remembered from one run to the next
    mark            the file that names the provider of a queue's directory
    directories     made, checked and locked by a start
    free_space      refuses mail below `minfree`
    locations       directories and locks that were opened
    presence        refuses mail while one of them lost its name
"""
