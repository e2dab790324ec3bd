"""Bytes, names and states of the one-file-a-message queue. Pure.

Modules, each with what it is:

    version  name and format of the provider, its directories
    states   the five states of a message, told by the names that there are
    line     one recipient of one message as a line of text
    due_times  the file that tells which messages a start reads first
    files    envelopes, info files and files of recipients: lines of one message
"""
