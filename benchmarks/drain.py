"""A backlog flows off when its next hop comes back: `python -m benchmarks.drain`. Ours and Postfix in the same run.

Both are filled over SMTP with the same messages (4 KiB, one recipient) for a domain whose next hop refuses connections,
until all rest in the deferred queue, and nothing is retried meanwhile (delays of 4 h in both). This is how a backlog comes
about; Postfix's `defer_transports` would fill its queue without a single attempt, and leave the next hop unknown to its
scheduler. Then smtp-sink listens there, everything is flushed (`queue flush`, `postqueue -f`), and the time until
the sink has all of it counts from the start of that command. Meanwhile new mail for another domain comes in at `--rate` and
goes to a sink of its own; its delay is from its MAIL to the reply to its final dot at that sink. Each server has the machine
for itself in its turn.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.measure.costs import at_rest
from benchmarks.results.records import Acknowledged, Delivery
from benchmarks.results.report import number, table
from benchmarks.results.workloads import WORKLOADS
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.load import Sink, program, send
from benchmarks.stage.progress import say
from benchmarks.stage.providers import ServedProvider, add_option, chosen
from benchmarks.stage.servers import Extras, Ours, Place, Postfix, Server
from benchmarks.stage.trial import SMALL, Trial, administer, queue_counts
from tests.support.processes import TrialError, free_port, wait_until

FILL = WORKLOADS["W2"]
NEW_DOMAIN = "to.trial.example"
BEFORE_S, AFTER_S = 3.0, 15.0
"""New mail runs so long before the flush; and what is under way when all is drained is waited for."""
P95_S, RATIO = 1.0, 2.0
NOTHING_MORE = Extras()
SETTLE_S, REST_S = 6.0, 60.0
"""What was deferred last has moved into clusters; then until the server has nothing to do, at most so long."""


@attrs.frozen
class Drained:
    """One server's turn. Delays (seconds) of new mail that came between flush and the last of the backlog."""

    server: str
    messages: int
    fill_s: float
    drain_s: float
    delays_s: tuple[float, ...]
    missing: int
    """New messages that had not arrived some time after."""

    @property
    def per_s(self) -> float:
        """Backlog messages a second."""
        return self.messages / self.drain_s

    @property
    def p95_s(self) -> float:
        """The 95th percentile of the delays; those that did not arrive are infinite."""
        return percentile([*self.delays_s, *[math.inf] * self.missing], 0.95)


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that this share of all does not exceed (nearest rank); infinite for none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.inf


def delays(
    sent: Sequence[Acknowledged], arrived: Sequence[Delivery], begin_s: float, end_s: float
) -> tuple[tuple[float, ...], int]:
    """Of the messages begun from `begin_s` to `end_s`: their delays, and how many did not arrive."""
    first: dict[int, float] = {}
    for delivery in arrived:
        for entry, _ in delivery.entries():
            first[entry] = min(delivery.at_s, first.get(entry, math.inf))
    wanted = [message for message in sent if begin_s <= message.began_at_s <= end_s]
    found = tuple(first[message.number] - message.began_at_s for message in wanted if message.number in first)
    return found, len(wanted) - len(found)


class Subject:
    """A server in its turn: what differs between ours and Postfix."""

    def __init__(self, server: Server, place: Place) -> None:
        self.server, self.place = server, place

    def deferred(self) -> int:
        """Messages at rest in the deferred queue."""
        if isinstance(self.server, Ours):
            counts = queue_counts(self.server)
            return counts["deferred"] if not counts["incoming"] else 0
        return sum(len(files) for _, _, files in os.walk(self.place.directory / "queue" / "deferred"))

    def flush(self) -> None:
        """Makes all of it due now. Raises: TrialError."""
        if isinstance(self.server, Ours):
            say(administer(self.server, "queue", "flush").decode().strip())
        elif isinstance(self.server, Postfix):
            subprocess.run([program("postqueue"), "-c", str(self.server.etc), "-f"], check=True, timeout=60)


def make(name: str, new_port: int, provider: ServedProvider, more: Extras) -> Server:
    """A server that sends mail for `NEW_DOMAIN` to this port, and everything else to its place's. `more`: for ours."""
    if name == "ours":
        relay = f'<relay address="127.0.0.1:{new_port}" destdomains="{NEW_DOMAIN}"/>'
        return Ours(
            extras=Extras(queue=f"<retry_delays>4h</retry_delays>{more.queue}", relays=relay, spool=more.spool),
            provider=provider,
        )
    lines = [f"transport_maps = inline:{{{NEW_DOMAIN}=smtp:[127.0.0.1]:{new_port}}}"]
    lines += ["minimal_backoff_time = 4h", "maximal_backoff_time = 4h"]
    return Postfix(extras="\n".join(lines))


def turn(options: argparse.Namespace, at: Stage, name: str, more: Extras = NOTHING_MORE) -> Drained:
    """One server's turn. `more`: elements for ours. Raises: TrialError."""
    with contextlib.ExitStack() as stack:
        place, messages = stack.enter_context(at.place(free_port())), options.messages
        trial = Trial(place.directory, SMALL)
        stack.callback(trial.close)
        trial.start_sink()
        server = make(name, trial.sink_port, chosen(options), more)
        stack.callback(server.close)
        server.start(place)
        subject, began_s = Subject(server, place), time.monotonic()
        send(FILL, messages, server.port, place.logs, options.timeout)
        wait_until(lambda: subject.deferred() == messages, options.timeout, f"{messages} messages to be deferred", 1.0)
        fill_s = time.monotonic() - began_s
        time.sleep(SETTLE_S)
        at_rest(server.account, REST_S)
        os.sync()  # else the kernel writes back what the filling left while the queue drains: more, the faster it was filled
        say(f"{name}: {messages} messages deferred in {fill_s:.0f} s")
        generator = trial.start_generator(server.port, 10_000_000, options.rate, 1)
        time.sleep(BEFORE_S)
        sink = Sink(place.logs, place.sink_port)
        stack.callback(sink.close)
        flushed_s = time.monotonic()
        subject.flush()
        wait_until(lambda: sink.count() >= messages, options.timeout, f"{messages} messages at the sink", 0.02)
        drained_s = time.monotonic()
        if not generator.running():
            raise TrialError(generator.complaint())
        generator.kill()
        time.sleep(1.0)
        if sink.count() != messages:
            raise TrialError(f"{name}: {messages} messages in the backlog, {sink.count()} at the sink")

        def found() -> tuple[tuple[float, ...], int]:
            return delays(trial.sent()[0], trial.deliveries(), flushed_s, drained_s)

        with contextlib.suppress(TrialError):
            wait_until(lambda: not found()[1], AFTER_S, "new mail", 0.5)
        server.stop()
        drained = Drained(name, messages, fill_s, drained_s - flushed_s, *found())
        say(f"{name}: drained in {drained.drain_s:.1f} s, {drained.per_s:.0f}/s; new mail p95 {drained.p95_s:.3f} s")
        return drained


def markdown(turns: Sequence[Drained]) -> str:
    """A row a turn, and the ratio of medians."""
    header = ["", "messages", "filled in, s", "drained in, s", "drained/s"]
    header += ["new mail", "median delay, s", "p95, s", "most, s", "not arrived"]
    rows = []
    for one in turns:
        cells = [str(one.messages), number(one.fill_s), number(one.drain_s), number(one.per_s), str(len(one.delays_s))]
        ordered = [percentile(one.delays_s, share) for share in (0.5, 0.95, 1.0)]
        rows.append([one.server, *cells, *(f"{value:.3f}" for value in ordered), str(one.missing)])
    return table(header, rows)


def ratio(turns: Sequence[Drained]) -> float | None:
    """How many times faster ours drains: of the medians; None without both."""
    rates = {name: [one.per_s for one in turns if one.server == name] for name in ("ours", "postfix")}
    return statistics.median(rates["ours"]) / statistics.median(rates["postfix"]) if all(rates.values()) else None


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drain", description="A backlog flows off.")
    add_option(parser)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=100.0, help="new messages a second to the other domain")
    parser.add_argument("--runs", type=int, default=1, help="turns of each server")
    parser.add_argument("--only", choices=("ours", "postfix"), help="leave the other one out")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for filling, and again for draining")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queues lie")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when ours drains so many times faster, and new mail was in time."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    turns: list[Drained] = []
    failed = False
    try:
        with stage(options.directory) as at:
            for _ in range(options.runs):
                for name in [options.only] if options.only else ["ours", "postfix"]:
                    turns.append(turn(options, at, name))
    except (TrialError, subprocess.SubprocessError) as e:
        say(f"stopped: {e}")
        failed = True
    if not turns:
        return 1
    print(markdown(turns))
    found, good = ratio(turns), not failed
    if found is not None:
        print(f"\nours / postfix: {found:.2f} (aim: {RATIO:g})")
        good = good and found >= RATIO
    late = [one for one in turns if one.server == "ours" and one.p95_s > P95_S]
    for one in late:
        print(f"- new mail: p95 {one.p95_s:.3f} s (limit: {P95_S:g} s)")
    good = good and not late
    print("good" if good else "**not good**")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
