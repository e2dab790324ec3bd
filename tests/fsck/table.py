"""Prints the two tables of `docs/fsck.md`: `python -m tests.fsck.table [kinds|damages]`.

kinds: everything that fsck tells apart. damages: what it makes of every damage of `damages`, done to a queue of 18 entries,
found, repaired, started and drained.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TextIO

from benchmarks.stage.providers import CLUSTERED, LOG, add_option
from mailismus.queue.fsck.faults import FaultKind
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.fsck.findings.kinds import FindingKind
from mailismus.queue.providers.log.fsck.kinds import LogFindingKind
from tests.fsck.damages import DAMAGES, Damage
from tests.fsck.worlds import kinds, unrepaired


def write_kinds(out: TextIO, of: Iterable[FaultKind] = FindingKind) -> None:
    """One row a kind of finding."""
    out.write("| kind | severity | what it is | `--repair` |\n|---|---|---|---|\n")
    for kind in of:
        severity, what, repair = kind.value
        out.write(f"| `{kind.code}` | {severity.value} | {_words(what)} | {_words(repair)} |\n")


def log_kinds() -> Sequence[FaultKind]:
    """Kinds of a log-structured queue that the clustered one does not have, or tells in other words."""
    return [kind for kind in LogFindingKind if _told(kind) not in {_told(other) for other in FindingKind}]


def _told(kind: FaultKind) -> tuple[str, str]:
    return kind.code, str(kind.value[1]).replace("the journal", "the log")


def _words(sentence: str) -> str:
    """Names of what is filled in, in italics."""
    return re.sub(r"{([a-z]+)}", r"*\1*", sentence).replace("<", "\\<")


def write_damages(out: TextIO) -> None:
    """One row a damage."""
    out.write("| what happened | fsck finds | after `--repair` |\n|---|---|---|\n")
    for damage in DAMAGES:
        out.write(_row(damage) + "\n")


def _row(damage: Damage) -> str:
    stopped = damage.make()
    damage.act(stopped)
    found = Counter((finding.severity.value, finding.kind) for finding in stopped.check())
    failed = unrepaired(stopped.repair())
    again = kinds(stopped.check())
    stopped.start()
    left = stopped.look()
    bounced = sum(
        entry.area is Area.BOUNCES and stopped.held.entries[q] is not Area.BOUNCES for q, (_, entry) in left.items()
    )
    gone = len(stopped.held.entries) - len(left)
    drained = len(stopped.drain())
    assert drained == len(left)
    told = ", ".join(
        f"{kind} ({severity}{f', {count} times' if count > 1 else ''})" for (severity, kind), count in found.items()
    )
    parts = [f"{drained - bounced} of {len(stopped.held.entries)} entries as they were"]
    parts += [f"{bounced} bounced: the sender is told"] if bounced else []
    parts += [f"{gone} gone"] if gone else []
    parts += ["NOT REPAIRED"] if failed or again else []
    return f"| {damage.title} | {told} | {', '.join(parts)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.fsck.table", description="Print the tables of docs/fsck.md.")
    parser.add_argument("table", nargs="?", choices=("kinds", "damages"), help="one of them (default: both)")
    add_option(parser)
    options = parser.parse_args()
    if options.provider == LOG.name:
        write_kinds(sys.stdout, log_kinds())
        sys.exit()
    if options.provider != CLUSTERED.name:
        sys.exit(f"the {options.provider} provider has no fsck")
    table = options.table
    if table != "damages":
        write_kinds(sys.stdout)
    if table != "kinds":
        write_damages(sys.stdout)
