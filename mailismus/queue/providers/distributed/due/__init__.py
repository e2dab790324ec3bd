"""What waits for its time: due rows, read a slot at a time, and published when it has come.

Modules:

    schedule    what is known of due rows. Pure
    firing      reads slots, publishes, and removes slots that have passed
"""
