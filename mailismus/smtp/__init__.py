"""The SMTP protocol without I/O: bytes in, replies, commands and outcomes out. Pure.

Both sides:

    transitions         an event that a table of transitions does not have: a defect of this program

Server side, bottom first:

    receiver            interface: what the server engine asks and tells about mail
    replies             every fixed reply
    extensions          EHLO keywords and MAIL parameters that we offer
    grammar             parsing of one command line
    body                end of content; bare CR, LF and NUL in it
    header              Received count and Message-ID of a message
    trace               the Received field that we add
    server_state        states, events and transitions of a session
    server_limits       limits of a session, its kind of TLS
    server_commands     table: what each command means in each state
    server_framing      bytes to lines and content, one question at a time
    server              the server engine: commands and content, from greeting to QUIT

Client side, bottom first:

    reply_parser        bytes from a server to replies
    pipelining          when pipelining is not used although offered
    client_state        states, events and transitions of a session
    client_transaction  one message: MAIL, RCPT, DATA, final dot; its phases and transitions
    client_opening      greeting, EHLO and HELO
    client_ends         the ends of a session, and what each means for its transactions
    client              the client engine: one session, many transactions
"""
