"""The commands, and the shell.

Modules, each with what it is:

    wording         help texts. Pure
    upkeep_wording  those of fsck, convert and setup. Pure
    directories     --queue and --spool, and the provider of the queue there
    broken_pipe     an output without a reader
    new_file        a file that a command makes for its user
    progress        one line of progress at a terminal
    command         a command about the queue. Pure
    acts            `queue hold|release|delete|bounce|redirect|acts|undo`
    queue           `queue list|count|shape|show|why|flush|servers`, `why`
    fsck            `fsck`
    convert         `queue convert`
    setup           `queue setup`
    completion      completions in the shell. Pure
    history         the shell's history file
    shell           `shell`
    register        the parsers of all of them
"""
