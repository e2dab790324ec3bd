"""The log-structured queue as a model, explored state by state: what a crash, a failing barrier and a start make of it.

    python -m tests.durability.model --provider log                     every scenario: no state may break an invariant
    python -m tests.durability.model --provider log -s hangs            one of them
    python -m tests.durability.model --provider log -m all              leave out each rule in turn

As the model of the clustered queue (`tests.durability.model`), whose disk and search it uses. It is read as a
specification of what `docs/decisions/0026-the-log-is-the-queue` says about barriers: the acts are what the server may do, in
any order; `replay` is what a start believes; `promises` is what was promised.

    state      records, what the process knows, what was promised    |  starts     what a start does
    replay     what a start believes                                 |  promises   what must hold
    requests   mail, outcomes, starts of work, moves; batches        |  explore    every order of acts, and every crash
    failures   barriers that fail
    rounds     marks, positions, free segments                       |  scenarios  what is explored, and the rules left out

Cells of the disk (`tests.durability.model.disk`):

    ("H", segment)       its header             ("K", segment, place)   mark of the envelope of that place in it
    ("B", segment, n)    batch in it            ("P", n)                block 0 or 1 of the positions

*In step with the code*: `control.rounds` (which marks, the suffix, positions, what is free), `control.ledger` (pins, what is
garbage when), `commit.items` and `commit.asked` (which records stand together), `control.moves`, `recovery.replay`,
`recovery.found`, `recovery.denied`, and of the journal `opening`, `replay`, `writer`.

*Otherwise than the code, on purpose*
- A start record and a move may be asked for at any time; the server asks for them in rounds. All orders of the server are
  among these.
- All that waits goes into one batch. A segment holds two or three.
- What rests and what waits in memory is one: an envelope on which no work has begun.
- A free segment is gone. Its name, and the use of its file for another segment, are left to the crash points.

*Not here*: segments that lost their names, and those that can't be begun; settlements that a report's commit takes along,
and that may fail; bytes and damage (a mark is there or not: it takes damage to tell the two kinds apart); due times and
runners of single intervals; message files; the epochs of spool ids.
"""
