"""The client side of SMTP and LMTP.

Modules, bottom first:

    reply_parser  bytes from a server to replies
    state         states, events and transitions of a session
    starttls      whether TLS is used, and how it can fail
    opening       what a reply to greeting, EHLO, HELO or STARTTLS leads to
    session       a session without transactions: its opening, replies in order, its ends
    pipelining    when pipelining is not used although offered
    groups        the commands of an envelope, in groups that are sent together
    transaction   one message: MAIL, RCPT, DATA, final dot; its phases and transitions
    ends          what the end of a session means for its transactions in progress
    engine        the client engine: one session, many transactions
    lmtp_state    the transitions of an LMTP session
    lmtp_engine   the client engine of LMTP: a reply for each recipient behind the final dot
"""
