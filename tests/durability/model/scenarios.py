"""What is explored: scenarios, and the rules that a mutant leaves out, with a scenario that shows the damage.

Some scenarios begin late, where a long story has led already: so the shortest damage is a few steps away.
"""

from __future__ import annotations

from tests.durability.model.state import Scenario


def _batch(number: int) -> tuple[str, ...]:
    return f"batch {number} written", f"barrier of batch {number}", f"batch {number} told"


def _failed(number: int) -> tuple[str, ...]:
    return f"batch {number} written", f"barrier of batch {number} FAILS"


def _sealed(checkpoint: int) -> tuple[str, ...]:
    return f"checkpoint {checkpoint} begins", f"checkpoint {checkpoint} syncs"


def _settle(message: int, recipient: int, generation: str, to: str) -> str:
    return f"settle {(((1, message), recipient), generation)} {to}"


_ONE, _TWO = ((1, False),), ((1, False), (1, False))
_BOTH = ((1, False), (1, True))
_STORED = ("start", "started", "message 0 arrives", *_batch(2))
_RESTS = (*_STORED, *_sealed(1), *_batch(3))
_TWO_RESTS = (*_RESTS, "message 1 arrives", *_batch(4))
_BOUNCE = _settle(0, 0, "0i", "1b")
_RETRY = _settle(0, 0, "0i", "1d")
_WARM = Scenario(_TWO, ways="", checkpoints=3, begun=_RESTS)
_SICK = Scenario(_ONE, failures=1, checkpoints=3, files=5)

SCENARIOS: dict[str, Scenario] = {
    "base": Scenario(),
    "stored": Scenario(begun=_STORED),
    "sealed": Scenario(begun=(*_STORED, *_sealed(1))),
    "untold": Scenario(begun=_STORED[:-1]),
    "asked": Scenario(begun=(*_STORED, _RETRY)),
    "two": Scenario(_TWO, ways=""),
    "big": Scenario(((2, False), (2, False)), ways="", checkpoints=1),
    "areas": Scenario(_ONE, ways="db", generations=2, begun=_STORED),
    "bounces": Scenario(ways="b", begun=_STORED),
    "report": Scenario(_TWO, ways="b", reports=True, begun=(*_STORED, _BOUNCE, *_batch(3))),
    "slow": Scenario(_ONE, slow=True),
    "rests": Scenario(ways="", checkpoints=3, begun=_RESTS),
    "rests-slow": Scenario(ways="", checkpoints=3, slow=True, begun=(*_STORED, "checkpoint 1 begins")),
    "rests-sealed": Scenario(_ONE, checkpoints=2, begun=(*_RESTS, _RETRY, *_batch(4), *_sealed(2))),
    "three": Scenario(_ONE, checkpoints=3),
    "open": _WARM,
    "open-slow": _WARM._replace(slow=True, begun=(*_STORED, "checkpoint 1 begins")),
    "full": _WARM._replace(checkpoints=4, lines=2),
    "open-again": _WARM._replace(kills=1),
    "open-cut": _WARM._replace(kills=1, begun=(*_TWO_RESTS, *_sealed(2), "kill -9", "start", "started")),
    "reuse": Scenario(_TWO, ways="", files=2, slots=2),
    "reused": Scenario(
        _TWO,
        ways="",
        files=2,
        slots=2,
        begun=(
            *_STORED[:-2],
            "message 1 arrives",
            *_STORED[-2:],
            *_batch(3),
            *_sealed(1),
            "batch 4 written",
            _settle(0, 0, "0i", "done"),
            *_batch(4)[1:],
        ),
    ),
    "kill": Scenario(_ONE, kills=1),
    "kill-sealed": Scenario(_ONE, kills=1, begun=(*_STORED, _RETRY, *_batch(3), *_sealed(1), "batch 4 written", "kill -9")),
    "kills": Scenario(_ONE, ways="", kills=2, files=5),
    "rests-kill": Scenario(ways="", checkpoints=3, kills=1, begun=_RESTS),
    "ids": Scenario(_BOTH, ways="", kills=2, powers=0, checkpoints=1),
    "twice": Scenario(_ONE, powers=2),
    "large": Scenario(((2, True),), ways="", powers=2, checkpoints=1),
    "links": Scenario(ways="", hardlinks=True, begun=_STORED),
    "large-links": Scenario(((2, True),), ways="", hardlinks=True),
    "syncs-fs": Scenario(ways="", syncs_fs=True, begun=_STORED),
    "walk": Scenario(powers=0, checkpoints=3, counts=False, begun=_RESTS),
    "sick": Scenario(_BOTH, ways="", failures=1, checkpoints=1),
    "sick-two": Scenario(
        ways="",
        failures=1,
        checkpoints=1,
        begun=(*_STORED, _settle(0, 0, "0i", "done"), "batch 3 written", "checkpoint 1 begins", "barrier of batch 3 FAILS"),
    ),
    "sick-sealed": _SICK._replace(begun=(*_STORED, *_sealed(1))),
    "sick-settled": _SICK._replace(begun=(*_STORED, *_sealed(1), _RETRY, *_failed(3), *_batch(3))),
    "sick-alone": Scenario(_ONE, ways="", failures=1, kills=1, powers=0, slots=2, begun=(*_STORED, *_sealed(1))),
    "sick-open": _WARM._replace(failures=1, begun=_TWO_RESTS),
    "sick-late": Scenario(
        ((1, False), (2, False)),
        ways="",
        failures=1,
        checkpoints=3,
        files=5,
        begun=(
            *_TWO_RESTS,
            "checkpoint 2 begins",
            _settle(1, 0, "0i", "done"),
            "checkpoint 2 syncs",
            *_failed(5),
            *_batch(5),
        ),
    ),
    "sick-named": Scenario(
        ways="",
        failures=1,
        powers=2,
        checkpoints=3,
        files=6,
        begun=(
            *_STORED,
            "checkpoint 1 begins",
            _settle(0, 0, "0i", "done"),
            "checkpoint 1 syncs",
            *_failed(3),
            *_batch(3),
            "checkpoint 2 begins",
        ),
    ),
    "sick-said": Scenario(_ONE, failures=1, checkpoints=0, begun=_STORED),
    "sick-start": Scenario(ways="", kills=1, failures=1, checkpoints=1, begun=(*_STORED[:3], "batch 2 written", "kill -9")),
    "sick-report": Scenario(_TWO, ways="b", reports=True, failures=1, checkpoints=1, begun=(*_STORED, _BOUNCE, *_batch(3))),
    "sick-kill": Scenario(_ONE, ways="", failures=1, kills=1, checkpoints=1),
    "sick-sick": Scenario(_BOTH, ways="", failures=2, checkpoints=0, files=5),
}

MUTANTS: dict[str, str] = {
    "barrier of a batch": "base",
    "crc": "base",
    "sequence": "reuse",
    "nonce": "reuse",
    "sequence + nonce": "reused",
    "one record a message": "base",
    "a report takes its bounces along": "report",
    "its bounces fail with a report": "sick-report",
    "segment known by its header": "reuse",
    "header counts with its batch": "kill",
    "the header tells the horizon": "reuse",
    "last good sequence": "sick",
    "denies all before": "sick-sick",
    "a sick file is left": "sick",
    "a sick file is not used again": "sick-late",
    "what lives is said again": "sick-kill",
    "what lives is said again first": "sick-said",
    "a failure is denied": "sick-alone",
    "a failed record is not kept": "sick-sealed",
    "a checkpoint is spoilt by a failure": "sick-two",
    "no checkpoint begins in trouble": "sick-sealed",
    "a settled message keeps its content": "sick-settled",
    "failed messages are held": "sick",
    "epoch": "ids",
    "a start trusts no tail": "kill",
    "a start says the last batch again": "sick-kill",
    "start reuses what was free before": "kill-sealed",
    "draft bytes synced": "large",
    "draft name synced": "large",
    "step 5": "sealed",
    "silo directory synced": "sealed",
    "message bytes synced": "sealed",
    "area directory synced": "rests-sealed",
    "cluster synced": "rests-sealed",
    "marks synced": "rests",
    "the first one syncs all": "open-cut",
    "the dead go first": "sick-sealed",
    "dead clusters ignored": "base",
    "open clusters are cut": "open-cut",
    "what was cut does not grow again": "sick-late",
    "numbers named are not used again": "sick-named",
    "places in the record": "asked",
    "what is asked already is late": "asked",
    "settles name the new place": "sealed",
    "place in the settle": "rests",
    "reuse after the record": "reuse",
    "release after durable": "sealed",
    "marks after durable": "rests",
    "the horizon is exact": "sealed",
    "the horizon is applied": "untold",
    "settled while moved": "asked",
    "the walk is told": "walk",
    "the walk sees the young": "walk",
}
"""What is left out (several are joined by ` + `), and where to look for the damage."""

NEEDLESS: dict[str, str] = {
    "the header tells the horizon": "the record tells it too; a start reads less",
    "a sick file is not used again": "written anew its pages reach the disk after all, if it has got well",
    "what lives is said again": "its batches are durable where they are, if the file does not get worse",
    "sequence": "the nonce does it",
    "nonce": "the sequence does it (but for damaged or forged bytes, which are not modelled)",
    "what was cut does not grow again": "what names those places lies before the next horizon, and is not read again",
    "numbers named are not used again": "the same",
}
"""Rules without which no damage is to be seen, and why they are kept."""
