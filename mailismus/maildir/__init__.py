"""Delivery into a maildir.

Modules, each with what it is:

    names       unique names of message files
    conversion  wire form to file form: dots unstuffed, lines end in LF
    delivery    `tmp` to `new`, durable
    mounts      file systems by path
    sweep       removes old files in `tmp`
"""
