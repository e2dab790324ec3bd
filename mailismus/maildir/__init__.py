"""Delivery into a maildir.

Modules, each with what it is:

    conversion  wire form to file form: dots unstuffed, lines end in LF
    store       maildirs by user: opened, their directories made
    maildirsize  the file of a quota. Pure
    quota       whether a message has room, and what lies in a maildir
    boots       numbers of boots, and of the writes since one
    names       the strategy of names that the configuration says
    delivery    `tmp` to `new`, durable
    mounts      file systems by path
    sweep       removes old files in `tmp`
"""
