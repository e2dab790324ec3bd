"""The retry rule by the clock of the next hop: `python -m benchmarks.retry_times`.

A server with `retry_delays` 1s|2s and `retry_maxtime` 7s, and a sink that answers 451 to every recipient and writes down
when. Each recipient is tried exactly five times: at once, after 1 s, after 2 s, after 2 s (each lengthened by at most a
tenth), and at the moment of expiry, 7 s after the message came; then it is a bounce. Times are counted from its
MAIL. Recipients of one message stay together.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from benchmarks.results.report import Spread, table
from benchmarks.sinks.refusing import parse_refusals
from benchmarks.stage.directories import stage
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen
from benchmarks.stage.servers import TREE, Extras, Ours
from benchmarks.stage.trial import Mix, Trial, queue_counts
from tests.support.processes import TrialError, free_port, listeners, start, wait_until

DELAYS_S, MAXTIME_S = (1.0, 2.0), 7.0
RULE = Extras(queue="<retry_delays>1s | 2s</retry_delays><retry_maxtime>7s</retry_maxtime>")
LATE_S = 0.3
"""How late an attempt may be, for the machine's sake."""
EARLY_S = 0.05
"""How early: clocks are compared, and times at rest are rounded."""
TOGETHER_S = 0.05
AFTERWARDS_S = 5.0
"""How long a sixth attempt is waited for."""
RECIPIENTS = 3


def windows(delays_s: Sequence[float], maxtime_s: float, lengthening: float = 0.1) -> list[tuple[float, float]]:
    """Between which seconds after arrival each attempt begins, by the rule; the last delay repeats."""
    found, n = [(0.0, 0.0)], 0
    while True:
        delay_s = delays_s[min(n, len(delays_s) - 1)]
        least, most = found[-1][0] + delay_s, found[-1][1] + delay_s * (1 + lengthening)
        if least >= maxtime_s:
            return [*found, (maxtime_s, maxtime_s)]
        found.append((least, min(most, maxtime_s)))
        n += 1


@attrs.frozen
class Attempt:
    """One attempt of all entries: its window, and when it came (seconds after arrival)."""

    window: tuple[float, float]
    times_s: tuple[float, ...]

    @property
    def good(self) -> bool:
        """Whether every one came in its time."""
        return all(self.window[0] - EARLY_S <= at_s <= self.window[1] + LATE_S for at_s in self.times_s)


@attrs.frozen
class Judged:
    """What came of all entries."""

    attempts: tuple[Attempt, ...]
    counts: tuple[int, ...]
    """Attempts of each entry."""
    apart_s: float
    """The most that recipients of one message were apart in any attempt."""

    @property
    def good(self) -> bool:
        """Whether the rule was kept."""
        exact = all(count == len(self.attempts) for count in self.counts)
        return bool(self.counts) and exact and self.apart_s <= TOGETHER_S and all(attempt.good for attempt in self.attempts)

    def markdown(self) -> str:
        """A row an attempt."""
        rows = [
            [
                str(number),
                f"{attempt.window[0]:g}-{attempt.window[1]:.4g}",
                Spread.of(attempt.times_s).text() if attempt.times_s else "never",
                str(len(attempt.times_s)),
                "good" if attempt.good else "**not good**",
            ]
            for number, attempt in enumerate(self.attempts, 1)
        ]
        return table(["attempt", "by the rule, s", "measured, s", "entries", ""], rows)


def judge(
    arrived_s: Mapping[int, float], refused_s: Mapping[tuple[int, int], Sequence[float]], rule: Sequence[tuple[float, float]]
) -> Judged:
    """`arrived_s`: each message's time; `refused_s`: the moments of each entry."""
    times = {entry: [at_s - arrived_s[entry[0]] for at_s in moments] for entry, moments in refused_s.items()}
    attempts = tuple(
        Attempt(window, tuple(own[index] for own in times.values() if index < len(own))) for index, window in enumerate(rule)
    )
    apart_s = 0.0
    for number in arrived_s:
        own = [moments for entry, moments in times.items() if entry[0] == number]
        for together in zip(*own, strict=False):
            apart_s = max(apart_s, max(together) - min(together))
    return Judged(attempts, tuple(len(own) for own in times.values()), apart_s)


def run(options: argparse.Namespace) -> bool:
    """Whether the rule was kept. Raises: TrialError."""
    with contextlib.ExitStack() as stack:
        at = stack.enter_context(stage(options.directory))
        refusals, port = at.root / "refused", free_port()
        argv = [sys.executable, "-m", "benchmarks.sinks.refusing", str(refusals), str(port)]
        sink = stack.enter_context(start("refusing-sink", argv, at.logs, cwd=TREE))
        wait_until(lambda: listeners(port) > 0 or not sink.running(), 20, "the sink to listen")
        if not sink.running():
            raise TrialError(sink.complaint())
        server = Ours(extras=RULE, provider=chosen(options))
        stack.callback(server.close)
        server.start(stack.enter_context(at.place(port)))
        made = Trial(at.root, Mix("1 KiB", 1024, True, RECIPIENTS))
        stack.callback(made.close)
        generator = made.start_generator(server.port, options.messages, options.rate, options.seed)
        if generator.wait(60 + options.messages / options.rate):
            raise TrialError(generator.complaint())
        say(f"{options.messages} messages sent; waiting {MAXTIME_S + AFTERWARDS_S:.0f} s")
        time.sleep(MAXTIME_S + AFTERWARDS_S)
        sent, doubt = made.sent()
        if doubt:
            raise TrialError(f"the server did not take every message: {doubt[0]}")
        counts = queue_counts(server)
        server.stop()
        sink.stop()
        judged = judge(
            {message.number: message.began_at_s for message in sent},
            parse_refusals(refusals.read_bytes()),
            windows(DELAYS_S, MAXTIME_S),
        )
    entries = sum(message.recipients for message in sent)
    print(judged.markdown())
    print(f"\nentries {entries}, tried {len(judged.counts)}; attempts each: {sorted(set(judged.counts))}")
    print(f"recipients of one message apart by at most {judged.apart_s * 1000:.0f} ms")
    print(f"in the queue afterwards: {counts}")
    bounced = counts == {"incoming": 0, "deferred": 0, "bounces": entries}
    return judged.good and bounced and len(judged.counts) == entries


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retry_times", description="The retry rule, measured.")
    add_option(parser)
    parser.add_argument("--messages", type=int, default=50)
    parser.add_argument("--rate", type=float, default=20.0, help="messages a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queue lies")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when the rule was kept."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        good = run(arguments().parse_args(argv))
    except TrialError as e:
        say(f"stopped: {e}")
        return 1
    print("good" if good else "**not good**")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
