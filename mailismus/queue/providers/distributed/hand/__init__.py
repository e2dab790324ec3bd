"""The hand of one server: the shares that the broker has told it of, and their entries in memory.

    trigger -> share, its rows not read yet -> entries: due, out -> settled, or left to a due row -> ack

Modules:

    held        a share in the hand, and a message of which there are shares. Pure
    hand        the shares and the index of their entries. Pure
    owning      whose the shares are: claims, and what is left to others
    enquiries   other servers are asked whether they have it
    reading     a share's rows and marks, from the database
    arrived     new mail that came in here a moment ago. Pure
    losing      what another share goes on with is ended
    rounds      the other bounces of a message
    waiting     a trigger that waits, and those that wait because another server may have their share
    line        triggers that are loaded side by side, so many of them. Pure
    loading     from triggers to entries, in their order, as far as there is room
    consuming   consumers of the broker's queues
    leaving     a clean stop leaves what is here to others
    giving_back what is given back for long leaves the hand
"""
