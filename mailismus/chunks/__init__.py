"""The pattern Unique Atomic Chunks: many writers, a new file for each write, no lock between them.

    caller -> access point -> write handler: made under a unique name -> written, durable -> linked where it counts
                                 unit of work: all phases, or none of them leaves a trace

Modules, each with what it is:

    names      what a unique name is made of: parts, and strategies that choose them
    generator  the one generator of names in a process
    unit       unit of work: phases that are undone together
    handler    the write handler: one chunk, from its first byte to its commit
    access     the access point: the directory where chunks are made, and the one where they count

*Rules*: every act goes through `disk.interface`. No two writers ever use one file, so a crash leaves whole chunks, and files
where chunks are made that nobody needs.

*Not here*: what the bytes are, and who removes what a crash left (`maildir`, providers of queues).

Source: seed 003 (Participants, Collaborations).
"""
