"""The commands, and the shell.

Modules, each with what it is:

    wording         help texts. Pure
    directories     --queue and --spool, and the provider of what lies there
    broken_pipe     an output that nobody reads any more
    queue           `queue list|count|shape|show|flush`
    fsck            `fsck`
    completion      what the shell completes. Pure
    history         what was typed into the shell
    shell           `shell`
    register        the parsers of all of them
"""
