"""What is explored: scenarios, and the rules that are left out, with a scenario that shows the damage."""

from __future__ import annotations

from tests.durability.log_model.state import Scenario


def _batch(number: int) -> tuple[str, ...]:
    return f"batch {number} written", f"barrier of batch {number}", f"batch {number} told"


def _round(*more: str) -> tuple[str, ...]:
    return "marks written", "marks synced", "positions written", *more, "positions synced", "segments freed"


_ONE, _TWO = (1,), (1, 1)
_ROUND, _LATER = _round(), _round("second block written")
_STORED = ("start", "own barrier", "up", "message 0 arrives", *_batch(2))
_END, _RETRY = "end of message 0 recipient 0", "retry of message 0 recipient 0"
_WORKS = (*_STORED, "start record of (2, 0)", "other mail", *_batch(3))
_MARKED = (*_WORKS, *_ROUND)
_RESTART = "kill -9", "start", "own barrier", "up"


_MOVE = "move of (2, 0)", "a move goes along"


def _others(*numbers: int) -> tuple[str, ...]:
    return tuple(label for number in numbers for label in ("other mail", *_batch(number)))


SCENARIOS: dict[str, Scenario] = {
    "base": Scenario(),
    "kill": Scenario(kills=1, others=0),
    "stored": Scenario(begun=_STORED, kills=1, rounds=1, others=1),
    "ended": Scenario(begun=(*_STORED, _END, *_batch(3)), kills=1, rounds=1, others=1),
    "untold": Scenario(begun=(*_STORED, _END, "batch 3 written", "barrier of batch 3"), kills=1, rounds=1, others=0),
    "recipients": Scenario((2,), begun=_STORED, others=0),
    "works": Scenario(begun=_STORED, starts=1, rounds=2, others=1),
    "works-kill": Scenario(begun=_STORED, starts=1, kills=1, others=1),
    "hangs": Scenario(begun=_MARKED, moves=1, rounds=1, kills=1, others=2),
    "rests": Scenario(begun=_STORED, moves=1, rounds=1, others=1),
    "retries": Scenario(begun=_STORED, retries=1, rounds=1, others=1),
    "two": Scenario(_TWO, begun=_STORED, rounds=1, others=1),
    "marked": Scenario(begun=_MARKED, rounds=2, kills=1, others=0),
    "hangs-long": Scenario(begun=(*_WORKS, *_others(4, 5)), rounds=2, kills=1, others=0),
    "moved": Scenario(begun=(*_MARKED, _MOVE[0]), rounds=1, others=1),
    "rests-again": Scenario(retries=1, begun=(*_STORED, _RETRY, *_batch(3), *_others(4, 5)), rounds=1, others=0),
    "twice": Scenario(begun=(*_WORKS, *_MOVE), powers=2, rounds=1, others=0),
    "kills": Scenario(begun=(*_WORKS, *_MOVE), kills=2, powers=0, rounds=2, others=1),
    "moved-twice": Scenario(begun=(*_MARKED, *_MOVE, *_others(4)), moves=1, kills=1, rounds=1, others=1),
    "moved-and-retried": Scenario((2,), retries=1, begun=(*_STORED, *_others(3), *_MOVE), rounds=1, others=0),
    "along-and-retried": Scenario(
        (2,),
        retries=1,
        begun=(*_STORED, *_others(3), _RETRY, *_batch(4), "move of (2, 0) with its content", _MOVE[1]),
        rounds=1,
        others=1,
    ),
    "copied": Scenario(
        _TWO,
        slots=3,
        begun=(
            *(*_STORED, "message 1 arrives", *_batch(3), *_RESTART),
            *("end of message 1 recipient 0", *_batch(4), *_others(5, 6)),
        ),
        rounds=1,
        others=0,
    ),
    "killed-marking": Scenario(
        _TWO,
        slots=3,
        begun=(*_STORED, "message 1 arrives", *_batch(3), _END, *_batch(4), "marks written", *_RESTART),
        rounds=1,
        others=0,
    ),
    "moving": Scenario(begun=(*_MARKED, *_MOVE), rounds=1, kills=1, others=1),
    "moving-along": Scenario(begun=(*_MARKED, "move of (2, 0) with its content", _MOVE[1]), rounds=1, kills=1, others=1),
    "moving-half": Scenario(
        (2,),
        begun=(*_STORED, _END, *_batch(3), *_MOVE),
        rounds=1,
        kills=1,
        others=1,
    ),
    "moving-resting": Scenario(begun=(*_STORED, *_others(3), *_ROUND, *_MOVE), starts=1, rounds=1, others=1),
    "moved-on": Scenario(begun=(*_MARKED, *_MOVE, *_others(4, 5)), rounds=1, kills=1, others=0),
    "started-while-moved": Scenario(
        begun=(*_STORED, *_others(3), *_ROUND, *_MOVE, "other mail", "batch 4 written", "start record of (2, 0)"),
        rounds=1,
        others=1,
    ),
    "moved-then-worked": Scenario(
        begun=(
            *(*_STORED, *_others(3), *_ROUND, *_MOVE, "other mail", "batch 4 written", "start record of (2, 0)"),
            *("barrier of batch 4", "batch 4 told", *_others(5), *_RESTART),
        ),
        rounds=1,
        kills=1,
        others=1,
    ),
    "fails": Scenario(_TWO, kills=1, failures=1, others=1),
    "fails-stored": Scenario(_TWO, begun=_STORED, kills=1, failures=1, rounds=1, others=1),
    "fails-retried": Scenario(retries=1, begun=_STORED, kills=1, failures=1, rounds=1, others=1),
    "fails-behind": Scenario(retries=1, begun=(*_STORED, *_others(3)), kills=1, powers=0, failures=1, rounds=1, others=1),
    "fails-twice": Scenario(begun=_STORED, kills=1, failures=2, rounds=0, others=1),
    "fails-marked": Scenario(begun=(*_STORED, _END, *_batch(3)), kills=1, failures=1, rounds=3, others=1),
    "fails-marked-work": Scenario(begun=_WORKS, moves=1, kills=1, failures=1, rounds=3, others=1),
    "fails-positions": Scenario(begun=(*_STORED, _END, *_batch(3), *_others(4)), failures=1, rounds=3, kills=1, others=0),
    "fails-blocks": Scenario(
        begun=(*_MARKED, _END, *_batch(4), "marks written", "marks synced", "positions written", "second block written"),
        kills=0,
        failures=1,
        rounds=2,
        others=1,
    ),
    "fails-start": Scenario(begun=(*_STORED, _END, "batch 3 written", "kill -9"), failures=1, kills=1, rounds=1, others=0),
    "fails-removed": Scenario(
        retries=1,
        begun=(
            *(*_STORED, *_others(3), _RETRY, "batch 4 written", "barrier of batch 4 FAILS", *_batch(4)),
            *("end of message 0 recipient 0", *_batch(5)),
        ),
        kills=2,
        powers=1,
        rounds=3,
        others=1,
    ),
    "moving-retried": Scenario(retries=1, begun=(*_STORED, _RETRY, *_batch(3), *_others(4), "move of (3, 0)", _MOVE[1])),
}

MUTANTS: dict[str, str] = {
    "a batch is told when it is durable": "base",
    "a mark is written behind the record that allows it": "works",
    "a new segment waits for the end of the old one": "two",
    "a segment is free when positions without it are durable": "ended",
    "a segment is free when the suffix begins behind it": "hangs-long",
    "a segment is free when its marks are durable": "ended",
    "a segment with a live envelope stays": "rests-again",
    "the content of a live envelope stays": "retries",
    "marks are synced before positions pass their records": "ended",
    "garbage without a durable mark keeps its records": "untold",
    "work keeps its records in the suffix": "works",
    "the suffix waits for moves": "moved",
    "positions do not pass what waits": "stored",
    "the first block is synced before the second is written": "marked",
    "a move of work has a start record beside it": "moved-on",
    "a replacement and its end stand in one batch": "retries",
    "a start acts on nothing before its own barrier": "works-kill",
    "a start marks the former copy of the last batch": "copied",
    "a start writes and syncs the marks of its suffix again": "killed-marking",
    "an envelope waits until a record about it is durable": "started-while-moved",
    "a batch that is written again keeps its marks": "moving-resting",
    "work keeps the moves that lead to it": "moved-then-worked",
    "a barrier that failed is not tried again": "fails",
    "positions tell which failed segments count no more": "fails-marked",
    "a sync of marks that failed is not tried again": "fails-marked",
    "a start makes the positions durable by which it ignores segments": "fails-marked",
    "positions whose sync failed count for nothing": "fails-positions",
    "positions whose sync failed are replaced by a new file": "fails-blocks",
    "a start whose barrier failed ends": "fails-start",
}
"""What is left out, and where to look for the damage."""

NEEDLESS: dict[str, str] = {
    "a segment is free when its marks are durable": "a free segment does not count, by its name (its next use is not here)",
}
"""Rules without which no damage is to be seen, and why they are kept."""
