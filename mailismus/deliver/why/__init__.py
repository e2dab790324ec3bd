"""Why mail waits: each reason has a name, a sentence, a counter, and a log record at its begin and its end.

Modules, leaves first:

    hold         the names of the reasons. Pure
    sentences    one sentence for each reason. Pure
    limits       which limit holds the mail of a destination. Pure
    survey       where each held job lies. Pure
    holds        what holds mail back at this moment. Pure
    watch        counts and logs holds that begin and end
    overview     the fullest and slowest next hops, and the last failures. Pure
    explain      explains entries for listings and `why`
    stopped      the same by the files of a stopped queue

A *hold* is something that keeps mail waiting: a limit, a host, a pool, a disk. A *reason* is the hold of one entry, or its
place if nothing holds it. Nothing here is asked while mail moves: a look once in a second, and the administrator's
questions.
"""
