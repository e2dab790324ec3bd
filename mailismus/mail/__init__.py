"""Values that every package uses. Pure: no I/O, no clock.

Modules, each with what it is:

    address     a mailbox, as in RFC 5321 4.1.2
    directory   local domains and users
    envelope    sender, recipients, client, whether the content is 8-bit
    ids         spool id of a message, queue id of an entry
    networks    a set of IP networks
    outcome     result of one delivery attempt for one entry
    reply       an SMTP reply: code, enhanced status, text
    saslprep    preparation of user names and passwords
    words       further facts of a message or a recipient, kept and not interpreted
"""
