"""Conversion: from one queue provider to another, on a stopped queue.

    old queue -> entries sorted by message -> room looked at -> new queue built beside -> synced -> read back and compared
              -> [state durable: the commit instant] -> old files out, new files in -> the old queue is kept until forgotten

No provider is named here: what a conversion needs of one is stated in `queue.provider`.

Modules, bottom first:

    places      the directories of a conversion, and what stays where it is
    sorting     all entries of a queue by message, with little memory
    digests     a digest of each content, in a file
    room        is there room for the new queue?
    copying     builds the new queue, compares it with the old one
    moving      directories change places, forward only
    forgetting  removes the old queue
    conversion  the whole of it
"""
