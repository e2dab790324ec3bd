"""The SMTP protocol without I/O: bytes in, replies, commands and outcomes out. Pure.

What both sides and reports use; the rooms import it, and one another not at all:

    transitions         an event that a table of transitions does not have: a defect of this program
    replies             every fixed reply
    extensions          EHLO keywords and MAIL parameters that we offer
    grammar             parsing of one command line
    body                end of content; bare CR, LF and NUL in it
    header              Received count and Message-ID of a message
    trace               the Received field that we add

Rooms:

    auth                authentication by SASL: mechanisms and their exchange
    server              the server engine: from a client's bytes to questions about mail, and replies
    client              the client engine: from messages to commands, and from replies to outcomes
"""
