"""What it costs to read an answer of a name server: `python -m benchmarks.dns_answers`, in some seconds.

CPU time of `read_response`, the least of `ROUNDS` or `MANY_ROUNDS`: ordinary answers, hostile ones that are refused, the
costliest that pass, and octets of pure chance. Exit code 1 when one is above its goal. Details: docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Mapping, Sequence

from dns.rdatatype import RdataType

from benchmarks.results.report import table
from benchmarks.stage.progress import shown
from mailismus.dns.message import read_response
from mailismus.dns.servers import NameServer
from tests.dns.hostile import ORDINARY, PASSED, REFUSED, Hostile, head, record

ROUNDS = 7
MANY_ROUNDS = 100
"""Of what costs a fraction of a millisecond: an interrupt would be half of that."""
RANDOM = 2000
ORDINARY_MS, REFUSED_MS, ANY_MS = 0.6, 0.5, 30.0
SERVER = NameServer("192.0.2.1")


def cost_ms(one: Hostile, rounds: int = ROUNDS) -> float:
    """CPU milliseconds of one reading."""
    query = one.query
    least = float("inf")
    for _ in range(rounds):
        began = time.process_time_ns()
        read_response(one.wire, query, SERVER)
        least = min(least, time.process_time_ns() - began)
    return least / 1e6


def random_answers(chance: random.Random) -> list[Hostile]:
    """Octets of pure chance behind a sound question, and sound records with data of pure chance."""
    kinds = (RdataType.MX, RdataType.CNAME, RdataType.DNAME, RdataType.A)
    made = []
    for number in range(RANDOM):
        if number % 2:
            counts = [chance.choice((0, 1, 3, 60, 65535)) for _ in range(3)]
            made.append(Hostile(head("example.net", RdataType.MX, *counts) + chance.randbytes(chance.randrange(2000))))
            continue
        records = [
            record(
                b"\xc0" + bytes((chance.randrange(12, 80),)), chance.choice(kinds), chance.randbytes(chance.randrange(40))
            )
            for _ in range(chance.randrange(1, 60))
        ]
        made.append(Hostile(head(answers=len(records)) + b"".join(records)))
    return made


def measure() -> dict[str, tuple[Mapping[str, Hostile], float, int]]:
    """What is measured: kind to answers, goal in ms, and rounds."""
    chance = {f"random {number}": one for number, one in enumerate(random_answers(random.Random(1)))}
    return {
        "ordinary": (ORDINARY, ORDINARY_MS, MANY_ROUNDS),
        "refused": (REFUSED, REFUSED_MS, MANY_ROUNDS),
        "passed": (PASSED, ANY_MS, ROUNDS),
        "random": (chance, ANY_MS, 1),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when no answer costs more than its goal."""
    argparse.ArgumentParser(prog="python -m benchmarks.dns_answers", description=__doc__).parse_args(argv)
    rows, is_good = [], True
    for kind, (answers, goal_ms, rounds) in measure().items():
        with shown(kind):
            costs = {title: cost_ms(one, rounds) for title, one in answers.items()}
        if kind == "random":
            title = max(costs, key=costs.__getitem__)
            answers, costs = {f"the worst of {RANDOM}": answers[title]}, {f"the worst of {RANDOM}": costs[title]}
        is_good = is_good and max(costs.values()) <= goal_ms
        for title, cost in costs.items():
            rows.append((kind, title, str(len(answers[title].wire)), f"{cost:.2f}", f"{goal_ms:g}"))
    print(table(("kind", "answer", "octets", "ms", "at most"), rows))
    print("good" if is_good else "**not good**")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
