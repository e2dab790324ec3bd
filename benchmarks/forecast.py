"""The forecast against what then happened: `mailismus plan` over the playground's sick hosts, and the mail log afterwards.

    python -m benchmarks.forecast --runs 3 --messages 20000 --record forecast.jsonl

Each run: a playground (`mailismus demo`) with mail at a low rate for a while, so that its server knows the hosts; then so
many messages as fast as it takes them; then the command, as an operator would give it. Its forecast is of what waits at that
moment, and the truth is what the mail log says of the same entries in the time that the forecast is for (`--span`). Times
count from the moment of the forecast. The log has whole seconds: half of one is added.

The playground's `retry_maxtime` is set so that mail expires within a run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import smtplib
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import attrs

from benchmarks.stage.progress import say, shown
from mailismus.demo.letters import write_letter
from mailismus.demo.playground import CONFIG_FILE, LOG_FILE, LOOPBACK
from mailismus.plan.forecast import percentile
from tests.support.processes import TrialError

WARM_S = 45.0
WARM_RATE = 20.0
SENDERS = 4
AFTER_S = 2.0
"""Behind the span, for the last lines of the log."""
_ANY_LINE = re.compile(r"(\S+) \[mail\] ([0-9A-F]{16}): ")
_LINE = re.compile(r"(\S+) \[mail\] ([0-9A-F]{16}): to=<[^>]*@([^>]*)>, relay=.*, delay=.*, status=(sent|bounced|expired) ")
ALL = "all"


@attrs.frozen
class Fate:
    """What becomes of the entries of a next hop: counts, and percentiles of the seconds until delivery."""

    sent: int
    bounced: int
    expired: int
    p50_s: float | None
    p95_s: float | None


@attrs.frozen
class Run:
    """One run, by next hop."""

    seed: int
    messages: int
    waiting: int
    """Entries in the forecast."""
    took_s: float
    """The whole command."""
    forecast: dict[str, Fate]
    truth: dict[str, Fate]


def send(port: int, seed: int, count: int, rate: float = 0.0) -> None:
    """Send letters, at this rate a second, or as fast as they are taken by several senders at once."""

    def work(number: int, letters: int) -> None:
        chance = random.Random(f"{seed} {number}").random
        with smtplib.SMTP(LOOPBACK, port, timeout=60) as client:
            for one in range(letters):
                letter = write_letter(one, chance)
                client.sendmail(letter.sender, [letter.recipient], letter.content.encode("ascii"))
                if rate:
                    time.sleep(1 / rate)

    if rate:
        work(-1, count)
        return
    threads = [threading.Thread(target=work, args=(number, count // SENDERS)) for number in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run(seed: int, messages: int, maxtime_s: int, span_s: int, warm_s: float = WARM_S) -> Run:
    """One playground from its begin to its end. Raises: TrialError."""
    command = [sys.executable, "-m", "mailismus.demo.keeper", "--rate", "0.01", "--maxtime", f"{maxtime_s}s"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        try:
            told = json.loads(keeper.stdout.readline())
            directory, port = str(told["directory"]), int(told["port"])
            send(port, seed, int(warm_s * WARM_RATE), WARM_RATE)
            send(port, seed, messages)
            config = os.path.join(directory, CONFIG_FILE)
            plan = [sys.executable, "-m", "mailismus", "--config", config, "plan", "--json", "--seed", str(seed)]
            began = time.monotonic()
            done = subprocess.run([*plan, "--until", f"{span_s}s"], capture_output=True, check=False)
            took_s = time.monotonic() - began
            if done.returncode:
                raise TrialError(f"mailismus plan ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
            forecast = json.loads(done.stdout)
            time.sleep(max(0.0, forecast["begins"] + span_s + AFTER_S - time.time()))
            lines = Path(directory, LOG_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
        finally:
            keeper.stdin.close()
            keeper.wait(60)
    begins = float(forecast["begins"])
    return Run(
        seed, messages, forecast["whole"]["entries"], took_s, _forecast(forecast, begins), _truth(lines, begins, span_s)
    )


def _forecast(value: dict[str, object], begins: float) -> dict[str, Fate]:
    hops = {ALL: value["whole"]}
    hops.update({str(hop["name"]): hop for hop in value["next_hops"]})  # type: ignore[attr-defined] # JSON of the command
    found = {}
    for name, hop in hops.items():
        moments = [None if hop[key] is None else hop[key] + 0.5 - begins for key in ("half", "most")]  # type: ignore[index] # as above
        found[name] = Fate(hop["delivered"], hop["bounced"], hop["expired"], *moments)  # type: ignore[index] # as above
    return found


def _truth(lines: Sequence[str], begins: float, span_s: float) -> dict[str, Fate]:
    """What became of the entries that waited then, by the mail log."""
    known = [(found[1], found[2]) for line in lines if (found := _ANY_LINE.match(line)) is not None]
    last = max(spool_id for at, spool_id in known if _moment(at) <= begins)  # what came later are reports
    counts: dict[str, Counter[str]] = {}
    delays: dict[str, list[float]] = {}
    for line in lines:
        found = _LINE.match(line)
        if found is None or found[2] > last:
            continue
        waited_s = _moment(found[1]) + 0.5 - begins
        if not 0.5 < waited_s <= span_s:
            continue
        for name in (ALL, found[3]):
            counts.setdefault(name, Counter())[found[4]] += 1
            if found[4] == "sent":
                delays.setdefault(name, []).append(waited_s)
    truth = {}
    for name, count in counts.items():
        values = sorted(delays.get(name, ()))
        percentiles = percentile(values, 0.5), percentile(values, 0.95)
        truth[name] = Fate(count["sent"], count["bounced"], count["expired"], *percentiles)
    return truth


def _moment(text: str) -> float:
    """UTC seconds of a line of the log."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z").timestamp()


def rows(run: Run) -> list[str]:
    """The run as rows of a table."""
    found = []
    for name, forecast in run.forecast.items():
        truth = run.truth.get(name)
        if truth is None:
            continue
        counts = f"{forecast.sent:,} / {truth.sent:,} | {forecast.expired:,} / {truth.expired:,}"
        cells = [_pair(forecast.p50_s, truth.p50_s), _pair(forecast.p95_s, truth.p95_s)]
        found.append(f"| {run.seed} | {name} | {counts} | {' | '.join(cells)} |")
    return found


def _pair(forecast: float | None, truth: float | None) -> str:
    if forecast is None or truth is None:
        return "" if forecast is truth else f"{forecast} / {truth}"
    return f"{forecast:.1f} / {truth:.1f} ({(forecast / truth - 1) * 100:+.0f} %)"


HEAD = (
    "| run | next hop | sent: forecast / truth | expired | 50th percentile s: forecast / truth | 95th percentile s |\n"
    "|---|---|--:|--:|--:|--:|"
)


def main(arguments: list[str]) -> int:
    """Run what is asked for, and print a table. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecast", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--messages", type=int, default=20_000, help="behind the slow begin (default: %(default)s)")
    parser.add_argument("--maxtime", type=int, default=120, metavar="SECONDS", help="retry_maxtime (default: %(default)s)")
    parser.add_argument("--span", type=int, default=150, metavar="SECONDS", help="of the forecast (default: %(default)s)")
    parser.add_argument(
        "--warm", type=float, default=WARM_S, metavar="SECONDS", help="the slow begin (default: %(default)g)"
    )
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--record", type=Path, help="keep the figures in this file, a line for each run")
    options = parser.parse_args(arguments)
    print(HEAD)
    for seed in range(options.seed, options.seed + options.runs):
        try:
            with shown(f"run {seed}"):
                result = run(seed, options.messages, options.maxtime, options.span, options.warm)
        except TrialError as error:
            say(f"stopped: {error}")
            return 1
        for row in rows(result):
            print(row, flush=True)
        say(f"run {seed}: {result.waiting:,} entries, the command took {result.took_s:.1f} s")
        if options.record is not None:
            with options.record.open("a") as file:
                file.write(json.dumps(attrs.asdict(result)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
