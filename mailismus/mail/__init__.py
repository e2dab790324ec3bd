"""Values that every package uses. Pure: no I/O, no clock.

Modules, each with what it is:

    address     a mailbox, as in RFC 5321 4.1.2
    attempts    the history of a recipient as a word of its line
    convert     8-bit content to 7-bit content
    directory   local domains and users
    envelope    sender, recipients, client, whether the content is 8-bit
    ids         spool id of a message, queue id of an entry
    injected    the end of a message that a program of this machine brought
    networks    a set of IP networks
    outcome     result of one delivery attempt for one entry
    reply       an SMTP reply: code, enhanced status, text
    saslprep    preparation of user names and passwords
    utf8        UTF-8 in addresses and headers
    words       further facts of a message or a recipient, kept and not interpreted
"""
