"""The clustered queue as a model that is explored state by state: what a crash, a failing barrier and a start make of it.

    python -m tests.durability.model                     every scenario: no state may break an invariant
    python -m tests.durability.model -s sick -n 20000    one of them, up to so many states
    python -m tests.durability.model -m "marks synced"   leave one rule out: the shortest story to the damage
    python -m tests.durability.model -m all              each rule in turn

It is read as a specification: the acts are what the server may do, in any order that `explore` allows; `replay` is what a
start believes; `promises` is what was promised. It runs none of the server's code (`tests/durability/crash` does that), so
that a fault of thought shows without a fault of hand, and it goes further: every order of acts, every loss of a power cut,
two crashes, failures beside both.

    records, disk, state, world, open_state  what there is  |  replay, start       what a start does
    journal, checkpoint, spool     what may happen    |  promises, explore, scenarios; search

*In step with the code*: horizon, order and abandoning of checkpoints (`checkpoint.run`, `checkpoint.files`,
`checkpoint.write`); late settles, new places, what is moved, what is refused (`ledger`); batches, denial, saying again
(`journal.commit`, `journal.writer`); nonces, reuse, gaps, the two passes of a start (`journal.replay`, `journal.load`);
the start's own barrier, epochs, sure horizon, dead files and cut tails (`journal.opening`); counting, walks, names of hard
links (`mailismus.spool`).

*Otherwise than the code, on purpose*
- All that waits goes into one batch; the server's batches are bounded, and what is kept after a failure may take several.
  What is said again is durable where it was, and trouble lasts until all of it is.
- The server hands the next batch to its thread before it tells of the last; here it tells first. No crash sees a
  difference: more has been promised here.
- A checkpoint's writes are one act. A power cut leaves every part of them; what happens between them happens before or
  behind (`Scenario.slow`).
- What lives in a sick segment is all said again; the server leaves out what is not in its memory. Not saying it again is a
  mutant that shows no damage.
- A start that finds no free file waits for ever; the server makes one. Files are never removed.
- It is known at once when a cluster has no live line, or a message no entry; the server may learn it later, by a walk.
- Which name of a linked file is made first is not told apart, nor is the rename of a draft's file.

*Not here*: times, slots and their directories; bytes (a cell is whole, torn or stale: half a write into a sector does not
hurt its neighbours); damage and forgery; full disks (an act that does not happen); an entry that two ask to settle at
once; a change of `hardlinks` between two starts; epochs raised by a running server; 250s that wait for a checkpoint
(`maxage` 0).
"""
