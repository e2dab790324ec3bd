"""The SMTP protocol without I/O: bytes in, replies and events out. Pure.

Server side:

    server              the server engine: command states, from greeting to QUIT
    server_state        states and limits of a session
    receiver            interface: whom the server engine asks about mail
    grammar             parsing of one command line
    extensions          EHLO keywords and MAIL parameters that we offer
    replies             every fixed reply
    body                end of content, and bare CR, LF and NUL in it
    header              Received count and Message-ID of a message
    trace               the Received field that we add

Client side:

    client              the client engine: one session, many transactions
    client_opening      greeting, EHLO and HELO
    client_transaction  one message: MAIL, RCPT, DATA, final dot
    pipelining          when pipelining is not used although offered
    reply_parser        bytes from a server to replies
"""
