"""How entries leave a share: they end, or another share goes on with them.

Modules:

    plan        what is written for the settlements of one message. Pure
    finding     where the shares of a message are, by its id
    rivals      of two outcomes of one entry, which one counts. Pure
    settling    carries settlements out, one message after the other, until they are durable
"""
