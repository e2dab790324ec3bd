"""Crash points for people: `python -m tests.durability.crash [--provider NAME] [--all]`.

Looks at the selection that judges mutants, tells what each workload came to, and ends at the first one that breaks an
invariant, unless `--all`. What the invariants are: `tests.durability.crash.knowledge`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.stage.providers import add_option
from tests.durability.crash.catalogue import catalogue_of
from tests.durability.crash.explorer import Explorer, Tally
from tests.durability.crash.knowledge import Broken
from tests.durability.crash.workloads import quick_selection
from tests.durability.subjects.named import SUBJECTS


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when every invariant holds."""
    parser = argparse.ArgumentParser(prog="python -m tests.durability.crash", description="Explore crash points.")
    add_option(parser)
    parser.add_argument("--all", action="store_true", help="go on behind a workload that breaks an invariant")
    options = parser.parse_args(argv)
    subject = SUBJECTS[options.provider]
    total, broken = Tally(), 0
    for look in quick_selection(catalogue_of(subject)):
        if (look.before or look.after) and not subject.has_links:
            continue
        try:
            tally = Explorer(subject, hardlinks=look.before, then=look.after).explore(
                look.task.names, look.task.depth, whole=len(look.task.names) > 1
            )
        except Broken as error:
            print(f"{look}: BROKEN\n{error}", flush=True)
            broken += 1
            if not options.all:
                break
        else:
            print(f"{look}: {tally}", flush=True)
            total += tally
    print(f"{total}; {broken} workloads break an invariant" if broken else f"{total}: good")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
