"""Looks at workloads, or at single states, and tells each break.

python -m tests.distributed.points                                          # all of it: an hour
python -m tests.distributed.points defer bounce                             # these workloads
python -m tests.distributed.points 'defer 002-rows-write-last-killed'       # this state
python -m tests.distributed.points --part 3/10                              # the third tenth of all states
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.distributed.points.explorer import Tally, look_at, states_of
from tests.distributed.points.ledger import Broken
from tests.distributed.points.workloads import WORKLOADS
from tests.durability.crash.part import parse_part


def run(names: Sequence[str], part: str) -> int:
    """Look at these, and return how many break."""
    total, breaks, share = Tally(), 0, parse_part(part)
    for name, workload in WORKLOADS.items():
        wanted = [one for one in names if one.split()[0] == name]
        if names and not wanted:
            continue
        tally, known = Tally(workloads=1), set[bytes]()
        for point in states_of(workload):
            state = f"{name} {point}"
            if (wanted and name not in wanted and state not in wanted) or not share.has(state):
                continue
            tally.states += 1
            try:
                tally.different += look_at(workload, point, known)
            except Broken as broken:
                breaks += 1
                print(f"BREAK {broken}", flush=True)
        total += tally
        print(f"{name}: {tally.states} states, {tally.different} different", flush=True)
    print(f"{total}, {breaks} breaks")
    return breaks


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="workloads, or states")
    parser.add_argument("--part", default="", help="a part of the states, as 3/10")
    given = parser.parse_args()
    sys.exit(1 if run(given.names, given.part) else 0)


if __name__ == "__main__":
    main()
