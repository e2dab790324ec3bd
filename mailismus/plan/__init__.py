"""The forecast `mailismus plan`: the delivery task as it is, on a virtual clock, over a snapshot of the queue, between
receivers that behave as they did lately.

    queue -> snapshot --> queue without a disk --+
    habits of the running server -> receivers ---+--> the delivery task -> books -> forecast -> text, JSON

Modules, leaves first:

    clock         virtual time: a heap of events
    site          sites of mail hosts: habits, limits, counts
    network       connections to them, which speak SMTP
    names         look-ups and maildirs that take their time
    waiting       the queue: the real index of due entries and retry rule, without a disk
    surroundings  context of the task, and what notices its failures
    snapshot      the waiting entries, within bounds
    recipients    what single recipients get, drawn from what others got
    fit           what hosts did lately, as habits of sites
    world         all sites, made as they are asked for
    books         outcomes by next hop
    forecast      what the books tell. Pure
    simulate      one run
    render        a forecast as text and JSON. Pure
    wording       help texts. Pure
    command       the command
"""
