"""Acts by every kind of FILTER on a large queue, each counted: `python -m benchmarks.acts --provider log`.

A queue of deferred entries with known senders, domains, sizes, ages and replies is built, whose time comes in hours. A
server runs over it, takes numbered mail at a steady rate and delivers it. Meanwhile entries are held and released, deleted,
bounced and redirected, by each kind of FILTER, and each of that is undone; in the end everything is held, and that is
undone.

Rules: an act, and its undoing, must change exactly the entries that the FILTER selects, by its own count and by
`queue count` of every area behind it; the numbered mail must arrive once. `--quick`: one FILTER alone. Not here: what an act
leaves of deliveries as fast as they go (`acts_beside`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from benchmarks.measure.costs import pss_bytes
from benchmarks.results.report import table
from benchmarks.results.varied import EVERYTHING, SELECTIONS, Selection
from benchmarks.results.verdict import Verdict, judge
from benchmarks.stage.administrator import Administrator
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.load import TREE
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen
from benchmarks.stage.servers import Extras, Ours, Place
from benchmarks.stage.trial import SMALL, Follower, Trial, administer, trial
from mailismus.errors import StartError
from mailismus.queue.acts.act import Act, ActKind
from tests.support.processes import TrialError, free_port, start

BUILD_TIMEOUT_S, DRAIN_S = 900.0, 60.0
UNDONE_KINDS = (ActKind.DELETE, ActKind.BOUNCE, ActKind.REDIRECT)
AREA_OF = {ActKind.HOLD: "hold", ActKind.DELETE: "deleted", ActKind.BOUNCE: "bounces", ActKind.REDIRECT: "deferred"}
"""Where an act puts entries that are deferred."""


@attrs.frozen
class Done:
    """An act, or the undoing of one. `wrong`: what it or the queue counts otherwise; empty: nothing."""

    name: str
    selection: Selection
    expected: int
    changed: int
    seconds: float
    delivered: float
    """Entries of the numbered mail a second meanwhile."""
    memory_bytes: int
    wrong: str

    def cells(self) -> list[str]:
        """A row of the table."""
        words = " ".join(self.selection.words) or "--all"
        words += "" if self.selection.limit is None else f" --limit {self.selection.limit}"
        numbers = f"{self.changed / self.seconds:.0f}", f"{self.delivered:.0f}", f"{self.memory_bytes / 1e6:.0f}"
        return [self.name, words, str(self.expected), str(self.changed), f"{self.seconds:.1f}", *numbers, self.wrong]


HEADER = ["act", "FILTER", "selects", "changed", "s", "entries/s", "delivered/s", "PSS MB", "wrong"]


class Course:
    """All acts over one server, whose queue has so many built entries."""

    def __init__(self, server: Ours, place: Place, made: Trial, options: argparse.Namespace) -> None:
        self._server, self._sink_port = server, place.sink_port
        self._administrator = Administrator(place.directory / "admin.sock")
        self._arrived = Follower(made.sink_path)
        self._recipients = options.recipients
        self._messages = options.entries // options.recipients

    def run(self, selections: Sequence[Selection]) -> Iterator[Done]:
        """Yield each act as it is done. Raises: TrialError, StartError."""
        for selection in selections:
            yield from self._hold(selection)
            for kind in UNDONE_KINDS:
                act, done = self._do(kind, selection)
                yield done
                yield self._undo(act, selection)
        act, done = self._do(ActKind.HOLD, EVERYTHING)
        yield done
        yield self._undo(act, EVERYTHING)

    def _hold(self, selection: Selection) -> Iterator[Done]:
        _, done = self._do(ActKind.HOLD, selection)
        yield done
        began_s, before = time.monotonic(), self._arrived.look()
        words = [word for word in selection.words if not word.startswith("area=")]
        released = self._administrator.act(ActKind.RELEASE, words or ["area=hold"])
        yield self._told("release", selection, released.entries, began_s, before, "")

    def _do(self, kind: ActKind, selection: Selection) -> tuple[Act, Done]:
        to = f"127.0.0.1:{self._sink_port}" if kind is ActKind.REDIRECT else ""
        began_s, before = time.monotonic(), self._arrived.look()
        act = self._administrator.act(kind, selection.words, to, selection.limit)
        return act, self._told(kind.value, selection, act.entries, began_s, before, AREA_OF[kind])

    def _undo(self, act: Act, selection: Selection) -> Done:
        began_s, before = time.monotonic(), self._arrived.look()
        restored = self._administrator.undo(act).restored
        return self._told(f"undo of {act.order.kind.value}", selection, restored, began_s, before, "")

    def _told(self, name: str, selection: Selection, changed: int, began_s: float, before: int, area: str) -> Done:
        """`area`: where the changed entries are now; empty: all are back."""
        seconds = time.monotonic() - began_s
        delivered = (self._arrived.look() - before) / seconds
        expected = selection.count(self._messages, self._recipients)
        wrong = [] if changed == expected else [f"changed {changed} of {expected}"]
        wrong += self._wrong_areas(area, expected)
        memory_bytes = pss_bytes(self._server.account.pids())
        return Done(name, selection, expected, changed, seconds, delivered, memory_bytes, "; ".join(wrong))

    def _wrong_areas(self, area: str, count: int) -> list[str]:
        """What `queue count` tells otherwise: so many built entries are in this area, the others deferred."""
        expected = {"hold": 0, "deleted": 0, "bounces": 0, "deferred": self._messages * self._recipients}
        if area:
            expected["deferred"] -= count
            expected[area] += count
        found: Mapping[str, Mapping[str, int]] = json.loads(administer(self._server, "queue", "count", "--json"))
        return [f"{name}: {found[name]['entries']}" for name, number in expected.items() if found[name]["entries"] != number]


def by_id(server: Ours) -> Selection:
    """The FILTER that names one message of the queue. Raises: TrialError."""
    line = administer(server, "queue", "list", "area=deferred", "--limit", "1", "--json").splitlines()[0]
    return Selection("id", (str(json.loads(line)["queue_id"]),), lambda message, entry: message == 0)


def build(server: Ours, place: Place, options: argparse.Namespace) -> None:
    """Fill the queue of a server that is stopped. Raises: TrialError."""
    argv = [sys.executable, "-m", "benchmarks.queue_builder", str(server.config), str(options.entries), "--varied"]
    argv += ["--area", "deferred", "--provider", server.provider.name, "--recipients", str(options.recipients)]
    with start("builder", argv, place.logs, cwd=TREE) as builder:
        if builder.wait(BUILD_TIMEOUT_S):
            raise TrialError(builder.complaint())


def measure(options: argparse.Namespace, at: Stage) -> tuple[list[Done], Verdict]:
    """All acts over one queue. Raises: TrialError, StartError."""
    with contextlib.ExitStack() as stack:
        directory = at.root / "instruments"
        directory.mkdir()
        made = stack.enter_context(trial(directory, SMALL))
        place = attrs.evolve(stack.enter_context(at.place(made.sink_port)), port=free_port())
        extras = Extras("<retry_delays>4h</retry_delays>", report="<delay_start>6h</delay_start>")
        server = Ours(extras=extras, provider=chosen(options))
        stack.callback(server.close)
        server.configure(place)
        build(server, place, options)
        server.start(place)
        generator = made.start_generator(server.port, 0, options.rate, 1)
        selections = (by_id(server), *SELECTIONS)
        found: list[Done] = []
        for done in Course(server, place, made, options).run(selections[:1] if options.quick else selections):
            found.append(done)
            say(" | ".join(done.cells()))
        made.end_load(generator, DRAIN_S)
        made.drain(DRAIN_S)
        server.stop()
        made.sink.stop()
        return found, judge(*made.sent(), made.deliveries())


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.acts", description="Acts by every kind of FILTER.")
    add_option(parser)
    parser.add_argument("--entries", type=int, default=100_000, help="in the queue (default: %(default)s)")
    parser.add_argument("--recipients", type=int, default=4, help="of each message (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=50.0, help="messages a second that come in (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="by one FILTER alone")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queue lies")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when every count was right, and all mail arrived once."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with stage(options.directory) as at:
            found, verdict = measure(options, at)
    except (StartError, TrialError) as e:
        say(f"stopped: {e}")
        return 1
    print(table(HEADER, [one.cells() for one in found]))
    print(verdict.markdown(f"beside it, {options.rate:.0f} a second"))
    print(f"memory of the server at most: {max(one.memory_bytes for one in found) / 1e6:.0f} MB")
    good = verdict.good and not verdict.doubled and not any(one.wrong for one in found)
    print("good" if good else "**not good**")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
