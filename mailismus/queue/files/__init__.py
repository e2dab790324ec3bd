"""What queue providers on local files share.

Modules, each with what it is:

    recipient_line  one entry as a line of text. Pure
    mark            the file that says whose a queue's directory is
    directories     made, checked and locked by a start
    free_space      refuses mail below `minfree`
    locations       directories and locks that were opened
    presence        refuses mail while one of them lost its name
"""
