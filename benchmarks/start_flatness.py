"""A start over a large queue is as quick as over a small one: `python -m benchmarks.start_flatness --sizes 10000,100000`.

For each size a queue is built: over SMTP with 1,000 recipients a message (up to `--smtp-up-to` entries), or through the
queue's seam (`queue_builder`). The server is killed by `kill -9` under load, started again and measured from outside; then
`queue count` beside a delivery load. Times of `python -m benchmarks.start_flatness` count from the start of the process.

With `--area deferred` the entries wait for hours; the *entry of the queue* whose delivery is measured is one of a message of
1,000 recipients that was deferred before the kill, rests in a cluster, and is due at the start. With `--area incoming` all
are due at once, as after a long `delay_start`, and the load of their delivery is on the start; `queue count` is left out.
What the load left before the kill goes out before the fresh message: both are new mail, the oldest first.

With `--recipients 1` each entry is a message of its own. With `--built` the queue is one that was made before
(`chunk_filling`) and is kept: so filling, which takes long, need not be done anew, nor while nothing else runs. With
`--drop-caches` the system forgets all pages of files before each start (needs root), and so reads all from the disk; the
interpreter's imports are read again before the start.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import smtplib
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs

from benchmarks.measure.costs import at_rest, pss_bytes
from benchmarks.results.content import recipient
from benchmarks.results.flatness import Counting, Listing, Measured, Start, Stopped, broken, markdown
from benchmarks.results.workloads import SENDER, WORKLOADS, Connections, Workload
from benchmarks.sinks.recorded import first_arrival, recipients_in, recording
from benchmarks.stage.asking import FEW, Counts, Lists, Windows
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.load import Sink, program, send
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen
from benchmarks.stage.servers import TREE, Extras, Ours, Place
from benchmarks.stage.trial import SMALL, Follower, Trial, queue_counts
from tests.support.processes import Process, TrialError, free_port, listeners, start, wait_until

RECIPIENTS, SIZE_BYTES = 1000, 4096
HOURS = "<retry_delays>4h</retry_delays>"
SOON, SOON_S = "<retry_delays>8s | 4h</retry_delays>", 9.5
"""What is deferred under the load has moved to rest when the server is killed, and is due when it starts again. The other
entries were made under `HOURS`: a longest pause here that is shorter would make theirs times of a wrong clock."""
LOAD_S = 6.5
BUILD_TIMEOUT_S = 1800.0
NOTHING_MORE = Extras()
FRESH = 1_000_000_000
"""The number of the first fresh message."""
IMPORTS = "import twisted.scripts.twistd, twisted.internet.reactor, mailismus.run, mailismus.app"
WINDOW_S = 5.0
TURNS = 5
IMPORT_RUNS = 3


@attrs.define
class Bed:
    """Where one queue lives and what it is spoken to with. Mail of the load goes to a sink that is up, the rest to
    `relay_port`."""

    options: argparse.Namespace
    place: Place
    trial: Trial
    more: Extras
    """Elements of its configuration."""
    fresh: int = FRESH

    @property
    def relay_port(self) -> int:
        """Where the queue's entries go."""
        return self.place.sink_port

    def server(self, queue: str, delay_start: str = "0") -> Ours:
        """A server with these settings; to be closed."""
        relay = f'<relay address="127.0.0.1:{self.trial.sink_port}" destdomains="to.trial.example"/>'
        extras = Extras(queue + self.more.queue, f"<delay_start>{delay_start}</delay_start>", relay, self.more.spool)
        return Ours(extras=extras, provider=chosen(self.options))

    @contextlib.contextmanager
    def running(self, queue: str, delay_start: str = "0") -> Iterator[Ours]:
        """The same, running, and stopped cleanly at the end."""
        server = self.server(queue, delay_start)
        try:
            server.start(self.place)
            yield server
            server.stop()
        finally:
            server.close()


def import_s() -> float:
    """How long the program's imports take alone, interpreter included: the median of some runs."""
    found = []
    for _ in range(IMPORT_RUNS):
        began_s = time.monotonic()
        subprocess.run([sys.executable, "-c", IMPORTS], cwd=TREE, check=True, timeout=60)
        found.append(time.monotonic() - began_s)
    return statistics.median(found)


def build(bed: Bed, entries: int) -> None:
    """Fills the queue; nothing runs afterwards. Raises: TrialError."""
    if bed.options.built is not None:
        return
    area, began_s = bed.options.area, time.monotonic()
    if entries > bed.options.smtp_up_to:
        server = bed.server(HOURS)
        server.configure(bed.place)
        argv = [sys.executable, "-m", "benchmarks.queue_builder", str(server.config), str(entries), "--area", area]
        argv += ["--provider", server.provider.name, "--recipients", str(bed.options.recipients)]
        with start("builder", argv, bed.place.logs, cwd=TREE) as builder:
            if builder.wait(BUILD_TIMEOUT_S):
                raise TrialError(builder.complaint())
        server.close()
    else:
        with bed.running(HOURS, "0" if area == "deferred" else "1d") as server:
            count = bed.options.recipients
            messages = entries // count
            send(Workload("build", SIZE_BYTES, count, Connections.ONE_MESSAGE, messages, 0), messages, server.port,
                 bed.place.logs, BUILD_TIMEOUT_S)  # fmt: skip
            wait_until(lambda: queue_counts(server)[area] == entries, BUILD_TIMEOUT_S, f"{entries} entries", 1.0)
    say(f"{entries} entries built in {time.monotonic() - began_s:.1f} s")


def kill_under_load(bed: Bed, seed: int) -> None:
    """A server that takes and delivers as much as it can, and is killed. In `deferred` it leaves 1,000 entries that are due
    when this returns."""
    is_deferred = bed.options.area == "deferred"
    server = bed.server(SOON, "0" if is_deferred else "1d")
    try:
        server.start(bed.place)
        began_s = time.monotonic()
        if is_deferred:
            due = Workload("due", SIZE_BYTES, RECIPIENTS, Connections.ONE_MESSAGE, 1, 1)
            send(due, 1, server.port, bed.place.logs, 60.0)
            began_s = time.monotonic()
        rate = bed.options.rate or (500.0 if is_deferred else 50.0)
        generator = bed.trial.start_generator(server.port, 1_000_000, rate, seed)
        time.sleep(LOAD_S)
        if not generator.running():
            raise TrialError(generator.complaint())
        server.kill()
        generator.kill()
    finally:
        server.close()
    bed.trial.sent_path.unlink(missing_ok=True)
    if is_deferred:
        time.sleep(max(0.0, began_s + SOON_S - time.monotonic()))


class Greeted(threading.Thread):
    """Waits for the first 220 and sends a message then. A subclass may look at the server at that moment."""

    def __init__(self, port: int, number: int) -> None:
        super().__init__(daemon=True)
        self._port, self._number = port, number
        self.at_s = 0.0

    def on_greeting(self) -> None:
        """Called at the greeting."""

    def run(self) -> None:
        """Tries to connect every few milliseconds."""
        deadline_s = time.monotonic() + 120
        while time.monotonic() < deadline_s:
            try:
                with smtplib.SMTP("127.0.0.1", self._port, "fresh.bench.example", 60) as client:
                    self.at_s = time.monotonic()
                    self.on_greeting()
                    to = recipient(self._number, 0).decode()
                    client.sendmail(SENDER, [to], b"Subject: fresh\r\n\r\nfresh\r\n")
                return
            except (OSError, smtplib.SMTPException):
                time.sleep(0.005)


def measured_start(bed: Bed, server: Ours) -> Start:
    """Starts the server over what the killed one left. Raises: TrialError."""
    if bed.options.drop_caches:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    imports_s, number = import_s(), bed.fresh
    bed.fresh += 1
    with recording(bed.place.logs, bed.relay_port) as backlog:
        greeted = Greeted(bed.place.port, number)
        greeted.start()
        began_s = time.monotonic()
        server.start(bed.place)
        greeted.join(120)
        fresh_s = first_arrival(bed.trial.sink_path, recipient(number, 0), 60.0)
        pss = pss_bytes(server.account.pids())
        entry_s = first_arrival(backlog, b"", bed.options.entry_timeout)
        pss = max(pss, pss_bytes(server.account.pids()))
        if bed.options.area == "deferred":
            wait_until(lambda: recipients_in(backlog) >= RECIPIENTS, 60.0, "every due entry at the sink", 0.05)
            say(f"all {RECIPIENTS} due entries were at the sink after {time.monotonic() - began_s:.2f} s")
        if bed.options.first_list:
            Lists(server, FEW).run()
            say(f"a list of {FEW} had its answer {time.monotonic() - began_s:.2f} s after the start")
        later = at_rest(server.account, bed.options.rest_timeout)
    return Start(imports_s, greeted.at_s - began_s, fresh_s - began_s, entry_s - began_s, pss, later)


@contextlib.contextmanager
def load(bed: Bed, server: Ours) -> Iterator[tuple[Process, Callable[[], int]]]:
    """A running generator, and how many messages have been delivered so far."""
    rate = bed.options.load_rate
    if rate:
        follower = Follower(bed.trial.sink_path)
        with bed.trial.start_generator(server.port, 10_000_000, rate, 1) as generator:
            yield generator, follower.look
            generator.kill()
        return
    sink = Sink(bed.place.logs, bed.relay_port)
    try:
        argv = [program("smtp-source"), *WORKLOADS["W2"].source_arguments(10_000_000), f"127.0.0.1:{server.port}"]
        with start("source", argv, bed.place.logs) as generator:
            yield generator, sink.count
            generator.kill()
    finally:
        sink.close()


def disk_use(directory: str | Path) -> tuple[int, int]:
    """Bytes that the files and directories below it have on the disk, and inodes."""
    size_bytes = inodes = 0
    with os.scandir(directory) as found:
        for one in found:
            more = disk_use(one.path) if one.is_dir(follow_symlinks=False) else (0, 0)
            size_bytes += one.stat(follow_symlinks=False).st_blocks * 512 + more[0]
            inodes += 1 + more[1]
    return size_bytes, inodes


def count_under_load(bed: Bed, server: Ours, entries: int) -> tuple[Counting, Listing | None]:
    """Rates of delivery while `queue count` runs, some times, and in the windows between; and with and without one
    `queue list` that is held up now and then. Raises: TrialError."""
    counts, lists = Counts(server, entries, entries // bed.options.recipients), Lists(server)
    quiet_s = counts.run()
    with load(bed, server) as (generator, delivered):

        def window(act: Callable[[], float]) -> tuple[int, float, float]:
            """Messages delivered while something is done, the seconds that it took, and what it gave."""
            first, began_s = delivered(), time.monotonic()
            given = act()
            took_s = time.monotonic() - began_s
            if not generator.running():
                raise TrialError(generator.complaint())
            return delivered() - first, took_s, given

        time.sleep(2.0)
        alone = [window(_nothing)]
        beside = list[tuple[int, float, float]]()
        for _ in range(TURNS):
            beside.append(window(counts.run))
            alone.append(window(_nothing))
        took_s = statistics.median(given for _, _, given in beside)
        without, rate = _rate(alone), _rate(beside)
        listing = None
        if bed.options.list:
            few_s = Lists(server, FEW).run()
            windows = lists.windows = Windows(delivered, WINDOW_S)
            list_s = lists.run()
            pss = pss_bytes(server.account.pids())
            say(f"queue list told {lists.found} of {entries} entries")
            listing = Listing(list_s, lists.found == entries, lists.peak_bytes, windows.share(without), few_s, pss)
    return Counting(quiet_s, took_s, counts.is_exact, without, rate), listing


def _nothing() -> float:
    time.sleep(WINDOW_S)
    return 0.0


def _rate(windows: Sequence[tuple[int, float, float]]) -> float:
    """Messages a second over all of them."""
    return sum(count for count, _, _ in windows) / sum(seconds for _, seconds, _ in windows)


def look_stopped(server: Ours, entries: int) -> Stopped:
    """`queue count` and `queue list` on the files of a queue whose server was stopped. Raises: TrialError."""
    lists = Lists(server)
    list_s = lists.run()
    counts = Counts(server, lists.found)  # the load may have left some more
    count_s = counts.run()
    return Stopped(count_s, counts.peak_bytes, list_s, lists.peak_bytes, counts.is_exact and lists.found >= entries)


def measure(options: argparse.Namespace, at: Stage, entries: int, more: Extras = NOTHING_MORE) -> Measured:
    """Everything about one size. `more`: elements of the configuration. Raises: TrialError."""
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(at.place(free_port()))
        place = attrs.evolve(made, port=free_port(), queue=options.built or made.queue)
        trial = Trial(place.directory, SMALL)
        stack.callback(trial.close)
        trial.start_sink()
        bed = Bed(options, place, trial, more)
        build(bed, entries)
        starts, counting, listing, stopped = list[Start](), None, None, None
        used, inodes = disk_use(place.queue)
        say(f"{entries} entries: {used >> 20} MiB on the disk, {inodes} inodes")
        rounds = options.starts if options.area == "deferred" else 1
        for number in range(rounds):
            kill_under_load(bed, number + 1)
            server = bed.server(SOON)
            try:
                starts.append(measured_start(bed, server))
                say(f"{entries} entries, start {number + 1}/{rounds}: {starts[-1]}")
                if number + 1 == rounds and options.area == "deferred" and not options.no_count:
                    counting, listing = count_under_load(bed, server, entries)
                    say(f"{entries} entries: {counting} {listing or ''}")
                if number + 1 < rounds:
                    server.stop()
                elif listing is not None:
                    server.stop()
                    stopped = look_stopped(server, entries)
                    say(f"{entries} entries: {stopped}")
            finally:
                server.close()
            wait_until(lambda: not listeners(place.port), 20, "the port to be free")
        return Measured(entries, tuple(starts), counting, listing, used, stopped)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start_flatness", description="Starts over large queues.")
    add_option(parser)
    parser.add_argument("--sizes", default="10000,100000,1000000", help="entries, multiples of 1,000 (default: %(default)s)")
    parser.add_argument("--area", choices=("deferred", "incoming"), default="deferred")
    parser.add_argument("--starts", type=int, default=3, help="starts over each queue (incoming: always 1)")
    parser.add_argument("--smtp-up-to", type=int, default=100_000, help="larger queues are built through the seam")
    parser.add_argument(
        "--rate",
        type=float,
        default=0.0,
        help="messages a second of the load when it is killed (default: 500; incoming: 50)",
    )
    parser.add_argument(
        "--load-rate", type=float, default=0.0, help="messages a second beside a count (default: as fast as it goes)"
    )
    parser.add_argument("--rest-timeout", type=float, default=120.0, help="seconds until the server must be at rest")
    parser.add_argument("--recipients", type=int, default=RECIPIENTS, help="of each message (default: %(default)s)")
    parser.add_argument("--drop-caches", action="store_true", help="before each start; needs root")
    parser.add_argument("--list", action="store_true", help="measure `queue list` too, and both on the stopped queue")
    parser.add_argument("--no-count", action="store_true", help="leave `queue count` out")
    parser.add_argument("--built", type=Path, help="the directory of a queue that has so many entries already; it is kept")
    parser.add_argument("--entry-timeout", type=float, default=60.0, help="seconds for the first old entry at the sink")
    parser.add_argument("--first-list", action="store_true", help="ask for a list as soon as old mail was delivered")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queue lies")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when every limit was kept."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    measured: list[Measured] = []
    try:
        with stage(options.directory) as at:
            for size in options.sizes.split(","):
                measured.append(measure(options, at, int(size)))
    except TrialError as e:
        say(f"stopped: {e}")
        if not measured:
            return 1
    print(markdown(measured))
    sentences = broken(measured)
    for sentence in sentences:
        print(f"- {sentence}")
    good = not sentences and len(measured) == len(options.sizes.split(","))
    print("good" if good else "**not good**")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
