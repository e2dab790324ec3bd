"""The log-structured queue: one log of messages and outcomes, which is the queue. Not offered yet.

    draft -> commit -> [one batch, one barrier] -> working set -> take -> settle -> [the next batch] -> finished
                                                      ^                                                    |
                                                      +- [a start reads the log]         [round of marks] -+-> file free

Rooms, bottom first; a room imports itself and the rooms above it in this list:

    format      bytes on disk: records, positions. Pure
"""
