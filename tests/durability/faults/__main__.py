"""`python -m tests.durability.faults`: the fault table, for people: call and error, and what the outside sees of it.

For each kind of call its first, middle and last one in the workload fail, once and for ever at that place. `--kinds` lists
the kinds.
"""

from __future__ import annotations

import argparse
import errno
import gc
import sys
from collections.abc import Sequence

from benchmarks.stage.providers import add_option
from tests.durability.faults.case import rehearse, run
from tests.durability.faults.cases import ERRNOS, Kind, faults_of, kinds
from tests.durability.faults.disk import Span
from tests.durability.faults.world import Broken
from tests.durability.subjects.interface import Subject
from tests.durability.subjects.named import SUBJECTS

SPANS = (Span.ONCE, Span.PLACE)


def cell(subject: Subject, kind: Kind, calls: list[int], span: Span, *, hardlinks: bool) -> tuple[str, int]:
    """What is seen, errors that look the same together; and how many cases that were."""
    words: dict[str, list[str]] = {}
    count = 0
    for number in ERRNOS:
        seen: set[str] = set()
        for call in sorted({calls[0], calls[len(calls) // 2], calls[-1]}):
            for fault in faults_of(kind, call, number, span):
                seen.update(run(fault, subject, hardlinks=hardlinks)[0].words.split(", "))
                count += 1
        if len(seen) > 1:
            seen.discard("goes on")
        if seen:
            words.setdefault(", ".join(sorted(seen)), []).append(errno.errorcode[number])
    if len(words) == 1:
        return next(iter(words)), count
    return "; ".join(f"{' '.join(names)}: {what}" for what, names in words.items()), count


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when every promise was kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.durability.faults", description=__doc__)
    add_option(parser)
    parser.add_argument("--kinds", action="store_true", help="list the kinds of calls, and how many of each there are")
    arguments = parser.parse_args(argv)
    subject = SUBJECTS[arguments.provider]
    settings = (False, True) if subject.has_links else (False,)
    try:
        found = {hardlinks: kinds(rehearse(subject, hardlinks=hardlinks), subject) for hardlinks in settings}
    except Broken as broken:
        print(f"nothing fails: BROKEN: {broken}")
        return 1
    every = sorted(set().union(*found.values()), key=str)
    if arguments.kinds:
        for kind in every:
            print(f"{kind}: {len(found[kind not in found[False]][kind])} calls")
        return 0
    gc.freeze()
    total = 0
    rows: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for kind in every:
        hardlinks = kind not in found[False]
        try:
            cells = [cell(subject, kind, found[hardlinks][kind], span, hardlinks=hardlinks) for span in SPANS]
        except Broken as broken:
            print(f"{kind}: BROKEN: {broken}", flush=True)
            return 1
        total += sum(count for _, count in cells)
        print(f"{kind}: {' | '.join(words for words, _ in cells)}", file=sys.stderr)
        alike = rows.setdefault((kind.stage, *(words for words, _ in cells)), {})
        alike.setdefault(kind.act, []).append(f"{kind.place} (hard links)" if hardlinks else kind.place)
    print("| while | what fails | once | for ever at that place |\n|---|---|---|---|")
    for (stage, *words), acts in rows.items():
        what = "; ".join(f"{act}: {', '.join(places)}" for act, places in acts.items())
        print(f"| {stage} | {what} | {' | '.join(words)} |")
    print(f"\n{total} cases; every one kept every promise.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
