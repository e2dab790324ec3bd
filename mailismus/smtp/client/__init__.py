"""The client side of SMTP.

Modules, bottom first:

    reply_parser  bytes from a server to replies
    pipelining    when pipelining is not used although offered
    state         states, events and transitions of a session
    groups        the commands of an envelope, in groups that are sent together
    transaction   one message: MAIL, RCPT, DATA, final dot; its phases and transitions
    starttls      whether TLS is used, and how it can fail
    opening       greeting, EHLO, HELO and STARTTLS
    ends          the ends of a session, and what each means for its transactions
    engine        the client engine: one session, many transactions
"""
