"""The mutation run: does a test fail for everything that can be left out?

    nice python -m tests.durability.mutation [--list] [--jobs N] [--done FILE] [--page FILE] [PART OF A NAME ...]

Prints a line for each mutant; exits with 1 if one survives that is not known to be needless. Who caught a mutant the last
time, as the page tells, is asked first: then it takes half an hour, else two. With `--done` results are kept in that file:
while the code is the same, what is there is not run again. What is said to be needless is asked the quick judges alone.
Of the queue of chunks, and of the shared queue, all tests run first over the source as it is: that tells which of them are
asked (`reach`). The mutants of the shared queue are rules alone: no call of a disk tells of it.
It ends with 1 too when the source as it is fails already, as that of the naive provider does (`--provider naive`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from tests.durability.crash.fingerprint import fingerprint
from tests.durability.mutation.children import Job, run
from tests.durability.mutation.judges import NO_PROVIDERS, TESTS, Judge, by_all_crash_points, by_memory, late, quick, soon
from tests.durability.mutation.mutants import PACKAGES, ROOT, RULES_ALONE, Kind, Mutant, find, sources
from tests.durability.mutation.needless import NEEDLESS
from tests.durability.mutation.page import Result, page, page_of, remembered
from tests.durability.mutation.reach import Reach
from tests.durability.mutation.telling import reach_of

FEW = 10
"""So many mutants are judged without a run that tells what runs them."""


class Kept:
    """Results in a file, each with a fingerprint of the code. `earlier`: who caught it in other code."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.code = _code()
        self.now: dict[str, Result] = {}
        self.earlier: dict[str, str] = {}
        for line in path.read_text().splitlines() if path is not None and path.exists() else ():
            code, *words = json.loads(line)
            result = Result(*words)
            if code == self.code:
                self.now[result.name] = result
            else:
                self.earlier[result.name] = result.by

    def add(self, result: Result) -> None:
        """One more."""
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps([self.code, result.name, result.by, result.why]) + "\n")


def _code() -> str:
    """Of what is judged, and of what judges."""
    parts = [
        ROOT / "mailismus",
        *(
            ROOT / "tests" / name
            for name in (
                *TESTS,
                "log",
                "chunk",
                "chunks",
                "maildir",
                "convert",
                "distributed",
                "queue/acts",
                "durability/faults",
                "durability/crash",
                "contracts",
                "fakes",
            )
        ),
    ]
    own = [
        ROOT / "tests" / "durability" / "mutation" / f"{name}.py"
        for name in (
            "hook",
            "judges",
            "mutants",
            "reach",
            "telling",
            "rule",
            "rules",
            "clustered_rules",
            "log_rules",
            "chunk_rules",
            "acts_rules",
            "distributed_rules",
            "distributed_aside_rules",
        )
    ]
    return fingerprint(sorted([*own, *(path for part in parts for path in part.rglob("*.py"))]))


@attrs.frozen
class Court:
    """Who judges the mutants of a provider. `reach`: what runs what, where that is told."""

    provider: str = "clustered"
    reach: Reach | None = None

    def soon(self, mutant: Mutant | None, first: str) -> list[Judge]:
        """Who is asked first. `first`: who caught it the last time."""
        if mutant is None and self.reach is not None:
            return []  # all tests have passed when it was told
        is_needless = mutant is not None and mutant.name in NEEDLESS
        if (tests := self._by_reach(mutant)) is not None:
            return tests[:1] if is_needless else by_memory(first, self.provider) + tests
        return quick(mutant, self.provider) if is_needless else soon(mutant, first, self.provider)

    def late(self, mutant: Mutant | None) -> list[Judge]:
        """Who is asked then."""
        has_no_others = self.reach is None or self.provider in NO_PROVIDERS
        if has_no_others or (mutant is not None and self._by_reach(mutant) is None):
            return late(mutant, self.provider)
        return by_all_crash_points(self.provider)

    def _by_reach(self, mutant: Mutant | None) -> list[Judge] | None:
        return None if mutant is None or self.reach is None else self.reach.judges(mutant, sources(self.provider))


def run_all(
    asked: Sequence[Mutant | None],
    kept: Kept,
    first: Mapping[str, str],
    most: int,
    court: Court = Court(),  # frozen
) -> Iterator[Result]:
    """Judge all that is not done (None: the source as it is), so many at a time; results as they come. Those that are
    said to be needless come behind the others, and last those that are not caught soon."""
    left = {mutant.name if mutant else "": mutant for mutant in asked}
    yield from (kept.now[name] for name in left if name in kept.now)
    left = {name: mutant for name, mutant in left.items() if name not in kept.now}
    who = {name: kept.earlier.get(name) or first.get(name, "") for name in left}
    jobs = [Job(mutant, court.soon(mutant, who[name]), court.provider) for name, mutant in left.items()]
    jobs.sort(key=lambda job: job.name in NEEDLESS)
    for result in run(jobs, most):
        if result.by or result.name in NEEDLESS:
            del left[result.name]
            kept.add(result)
            yield result
        else:
            print(f"not soon: {result.name}", file=sys.stderr, flush=True)
    for result in run([Job(mutant, court.late(mutant), court.provider) for mutant in left.values()], most):
        kept.add(result)
        yield result


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser(prog="python -m tests.durability.mutation")
    text = "whose mutants (default: %(default)s); maildir: those of deliveries into maildirs; convert, acts: of these"
    parser.add_argument("--provider", choices=[*PACKAGES], default="clustered", help=text)
    parser.add_argument("--list", action="store_true", help="only say what there is")
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time")
    parser.add_argument("--done", type=Path, help="file of results")
    parser.add_argument("--page", type=Path, help="file to write the table to")
    parser.add_argument("--only-known", action="store_true", help="judge nothing: tell what the file of results tells")
    parser.add_argument("parts", nargs="*", help="only mutants whose name has one of these in it")
    options = parser.parse_args()
    found = find(sources(options.provider))
    if options.provider in RULES_ALONE:
        found = [mutant for mutant in found if mutant.kind is Kind.RULE]
    mutants = [mutant for mutant in found if not options.parts or any(part in mutant.name for part in options.parts)]
    if options.list:
        print("\n".join(mutant.name for mutant in mutants))
        return 0
    kept = Kept(options.done)
    asked: list[Mutant | None] = [*mutants] if options.parts else [*mutants, None]
    if options.only_known:
        asked = [mutant for mutant in mutants if mutant.name in kept.now]
    known = page_of(options.provider)
    first = remembered([mutant.name for mutant in mutants], known.read_text() if known.exists() else "")
    results, fails_already = [], False
    reach = None
    if len(asked) > FEW and not options.only_known:
        try:
            reach = reach_of(options.provider, options.done and options.done.with_suffix(".reach"), kept.code)
        except ValueError as error:
            print(f"the source as it is fails already: {error}", flush=True)
            return 1
    for result in run_all(asked, kept, first, options.jobs, Court(options.provider, reach)):
        if not result.name and result.by:
            print(f"the source as it is fails already: {result}", flush=True)
            fails_already = True
        if result.name:
            print(result.line(), flush=True)
            results.append(result)
    results.sort(key=lambda result: list(first).index(result.name))
    wrong = [result for result in results if not result.is_fine]
    caught = sum(bool(result.by) for result in results)
    print(f"\n{len(results)} mutants, {caught} caught, {len(results) - caught} not; {len(wrong)} of them wrong.")
    if options.page is not None:
        not_judged = [name for name in first if name not in {result.name for result in results}]
        options.page.write_text(page(results, not_judged, options.provider))
    return 1 if wrong or fails_already else 0


if __name__ == "__main__":
    sys.exit(main())
