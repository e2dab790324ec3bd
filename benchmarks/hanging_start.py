"""One delivery hangs while much other mail passes, then `kill -9`: `python -m benchmarks.hanging_start`.

A message goes to a next hop that never answers the final dot. While it hangs, `--messages` messages of 4 KiB are taken and
delivered; then the server is killed, and started again. An attempt that hangs keeps what a start of the log-structured queue
must read in order, its working suffix; it may not grow beyond 64 MB. Told are the length of that suffix, by the queue's
files, the bytes that the start has read when it greets, less those of the start over the empty queue before the load, the
first 220, a fresh message, and when the message that hung is tried again. Times count from the start of the process.

Rules: a run counts only if the delivery hung from before the first message until the kill. Every process is ended, also on
errors.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.isolation import await_listener, submit
from benchmarks.measure.costs import pss_bytes
from benchmarks.results.content import recipient
from benchmarks.results.flatness import DELIVERY_S, GREETING_BEYOND_IMPORT_S
from benchmarks.results.report import number, table
from benchmarks.results.workloads import WORKLOADS
from benchmarks.sinks.hanging import Way, hung
from benchmarks.sinks.recorded import first_arrival
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.load import Sink, program
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen
from benchmarks.stage.servers import TREE, Extras, Ours, Place
from benchmarks.stage.trial import SMALL, Trial, queue_counts
from benchmarks.start_flatness import Greeted, import_s
from tests.support.processes import TrialError, free_port, listeners, start, wait_until

SUFFIX_BYTES = 64e6
"""The working suffix must stay below."""

SLOW, FRESH = "slow.trial.example", "to.trial.example"
AGAIN_S = 60.0
_SUFFIX = re.compile(r"working suffix begins at batch (\d+)")
_BATCH = re.compile(r"^batch (\d+) at \d+, (\d+) bytes$", re.MULTILINE)


@attrs.frozen
class Restarted:
    """One start over what the killed server left. Seconds from the start of the process."""

    messages: int
    suffix_bytes: int
    """Of the batches that the start read in order; 0: the queue has none."""
    read_bytes: int
    """That the process had read when it greeted, less those of the start over the empty queue."""
    import_s: float
    greeting_s: float
    fresh_s: float
    again_s: float
    """Until the next hop that hung was given the message again."""
    pss_bytes: int

    def broken(self) -> list[str]:
        """The limits that were not kept, as sentences."""
        found = []
        if self.suffix_bytes >= SUFFIX_BYTES:
            found.append(f"the working suffix is {self.suffix_bytes / 1e6:.0f} MB long")
        if self.greeting_s - self.import_s > GREETING_BEYOND_IMPORT_S:
            found.append(f"first 220 {self.greeting_s - self.import_s:.2f} s after the imports")
        if self.fresh_s > DELIVERY_S:
            found.append(f"fresh message: {self.fresh_s:.2f}")
        return found

    def row(self) -> list[str]:
        """Of the table."""
        megabytes = [f"{value / 1e6:.1f}" for value in (self.suffix_bytes, self.read_bytes)]
        seconds = [number(value) for value in (self.import_s, self.greeting_s, self.fresh_s, self.again_s)]
        return [str(self.messages), *megabytes, *seconds, f"{self.pss_bytes / 1e6:.0f}"]


HEADER = [
    *("messages", "suffix, MB", "read at 220, MB", "imports, s"),
    *("first 220, s", "fresh message, s", "tried again, s", "PSS MB"),
]


def suffix_bytes(server: Ours, queue: Path) -> int:
    """Bytes of batches in the working suffix of a stopped queue, by `mailismus dump`; 0: it keeps none. Raises:
    TrialError."""
    positions = queue / "queue" / "positions"
    if not positions.exists():
        return 0
    found = [int(begin) for begin in _SUFFIX.findall(_dump(server, positions))]
    if not found:
        raise TrialError(f"{positions} tells no working suffix")
    batches = [batch for path in (queue / "queue" / "log").glob("*.mqj") for batch in _BATCH.findall(_dump(server, path))]
    return sum(int(size) for sequence, size in batches if int(sequence) >= max(found))


def _dump(server: Ours, path: Path) -> str:
    done = subprocess.run(
        server.command("dump", str(path)), env=server.environment(), capture_output=True, timeout=120, check=False
    )
    return done.stdout.decode("utf-8", "replace")


def read_by(pid: int) -> int:
    """Bytes that a process has asked for by `read` and the like so far."""
    found = re.search(r"rchar: (\d+)", Path(f"/proc/{pid}/io").read_text())
    assert found is not None
    return int(found[1])


class GreetedAndRead(Greeted):
    """As `Greeted`; bytes that the server had read at the greeting."""

    def __init__(self, port: int, first: int, server: Ours) -> None:
        super().__init__(port, first)
        self._server = server
        self.read_bytes = 0

    def on_greeting(self) -> None:
        self.read_bytes = read_by(self._server.pid)


def pass_mail(server: Ours, place: Place, trial: Trial, messages: int) -> None:
    """Other mail, until all of it is delivered. Raises: TrialError."""
    sink = Sink(place.logs, place.sink_port)
    try:
        argv = [program("smtp-source"), *WORKLOADS["W2"].source_arguments(messages), f"127.0.0.1:{server.port}"]
        began_s = time.monotonic()
        with start("source", argv, place.logs) as generator:
            if generator.wait(120 + messages / 100):
                raise TrialError(generator.complaint())
        wait_until(lambda: sink.count() >= messages, 120 + messages / 100, f"{messages} messages at the sink", 0.2)
        say(f"{messages} messages passed in {time.monotonic() - began_s:.0f} s")
    finally:
        sink.close()


def measure(options: argparse.Namespace, at: Stage) -> Restarted:
    """One run. Raises: TrialError, also when the delivery did not hang all the time."""
    with contextlib.ExitStack() as stack:
        place = attrs.evolve(stack.enter_context(at.place(free_port())), port=free_port())
        trial = Trial(place.directory, SMALL)
        stack.callback(trial.close)
        trial.start_sink()
        port, path = free_port(), place.directory / "hung"
        argv = [sys.executable, "-m", "benchmarks.sinks.hanging", str(path), str(port), Way.DOT.value]
        await_listener(port, stack.enter_context(start("hanging", argv, at.logs, cwd=TREE)))
        relays = f'<relay address="127.0.0.1:{port}" destdomains="{SLOW}"/>'
        relays += f'<relay address="127.0.0.1:{trial.sink_port}" destdomains="{FRESH}"/>'
        server = Ours(extras=Extras(relays=relays), provider=chosen(options))
        stack.callback(server.close)
        greeted = GreetedAndRead(place.port, 0, server)
        greeted.start()
        server.start(place)
        greeted.join(60)
        empty = greeted.read_bytes
        submit(server.port, 1, [SLOW])
        wait_until(lambda: hung(path.read_bytes())[0] == 1, 30, "the next hop to hang")
        pass_mail(server, place, trial, options.messages)
        if hung(path.read_bytes()) != (1, 0) or queue_counts(server)["incoming"] != 1:
            raise TrialError(f"the delivery did not hang all the time: {hung(path.read_bytes())}")
        server.kill()
        wait_until(lambda: not listeners(place.port), 20, "the port to be free")
        suffix = suffix_bytes(server, place.queue)
        imports_s, greeted = import_s(), GreetedAndRead(place.port, 1, server)
        greeted.start()
        began_s = time.monotonic()
        server.start(place)
        greeted.join(120)
        fresh_s = first_arrival(trial.sink_path, recipient(1, 0), 60.0)
        wait_until(lambda: hung(path.read_bytes())[0] == 2, AGAIN_S, "the message that hung to be tried again", 0.02)
        again_s = time.monotonic()
        pss = pss_bytes(server.account.pids())
        server.kill()  # a clean stop would wait for the final dot's reply
        return Restarted(
            *(options.messages, suffix, greeted.read_bytes - empty, imports_s),
            *(greeted.at_s - began_s, fresh_s - began_s, again_s - began_s, pss),
        )


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hanging_start", description="A start after a hung delivery.")
    add_option(parser)
    parser.add_argument("--messages", type=int, default=300_000, help="that pass while one hangs (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queue lies")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when every limit was kept."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    runs: list[Restarted] = []
    try:
        with stage(options.directory) as at:
            for _ in range(options.runs):
                runs.append(measure(options, at))
                say(str(runs[-1]))
    except TrialError as e:
        say(f"stopped: {e}")
        return 1
    print(table(HEADER, [run.row() for run in runs]))
    sentences = [sentence for run in runs for sentence in run.broken()]
    for sentence in sentences:
        print(f"- {sentence}")
    print("**not good**" if sentences else "good")
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
