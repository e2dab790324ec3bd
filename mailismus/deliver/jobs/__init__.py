"""What is to be delivered together: jobs of a message, what holds their content, and how much may be in hand.

Modules, leaves first:

    concurrency  how many workers have a job of a message. Pure
    conversion   8-bit messages as 7-bit content: what is measured, remembered, converted on its way
    smtputf8     messages that need SMTPUTF8, and what a host without it gets of them. Pure
    job          the recipients of a message for one next hop
    room         the share of the room that a sender or a next hop may hold. Pure
    held         how many entries are held, in all and of each sender, and how many more may be. Pure
"""
