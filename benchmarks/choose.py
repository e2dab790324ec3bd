"""Which queue? All providers in turn: `python -m benchmarks.choose --record FILE`. What it measures: docs/benchmarks.md.

Each part is another benchmark's, with each queue in its turn on file systems of its own. `--record` goes on where it
stopped; `--write` makes the tables and drawings of `docs/choosing-a-queue` of it. Needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from benchmarks import drain, main_path, start_flatness
from benchmarks.measure.disk_bytes import device_bytes, used_bytes
from benchmarks.measure.disk_calls import Counted
from benchmarks.results.choosing import PARTS, Key, draw, markdown
from benchmarks.results.kept import Kept
from benchmarks.results.workloads import WORKLOADS
from benchmarks.sinks.refusing import parse_refusals
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.file_systems import ground
from benchmarks.stage.progress import say
from benchmarks.stage.servers import TREE
from benchmarks.stage.trial import SMALL, Trial
from benchmarks.stage.variants import VARIANTS, Variant
from tests.support.power import FileSystem
from tests.support.processes import TrialError, free_port, listeners, start, wait_until

FEWER = 10
"""So many times fewer messages with one session."""
DEFERRALS = 4
AGAIN = "<retry_delays>1s | 1s | 1s | 1s | 4h</retry_delays>"
DEFERRED_MESSAGES, DEFERRED_RATE, DEFERRED_TIMEOUT_S = 4000, 500.0, 90.0
SETTLE_S = 6.0
SIZE_MB = 2500


def measure_load(at: Stage, variant: Variant, options: argparse.Namespace, name: str) -> dict[str, float]:
    """New mail. `name`: `W1/50`, of workload and sessions. Raises: TrialError."""
    workload, sessions = WORKLOADS[name.split("/")[0]], int(name.split("/")[1])
    messages = workload.messages if sessions > 1 else workload.messages // FEWER
    run = main_path.measure(variant.maker(), at, attrs.evolve(workload, sessions=sessions), max(1, messages // options.less))
    return {
        "accepted/s": run.accepted_per_s,
        "delivered/s": run.delivered_per_s,
        "CPU ms/msg": run.cpu_ms,
        "barriers/msg": run.barriers or 0.0,
        "device KiB/msg": run.device_kib,
        "PSS MB": run.pss_bytes / 1e6,
        "others %": run.others_share * 100,
    }


def measure_deferrals(at: Stage, variant: Variant, options: argparse.Namespace, name: str) -> dict[str, float]:
    """Messages that are deferred four times. Raises: TrialError."""
    messages = max(1, DEFERRED_MESSAGES // options.less)
    with contextlib.ExitStack() as stack:
        refusals, port = at.logs / "refused", free_port()
        stack.callback(refusals.unlink, missing_ok=True)
        argv = [sys.executable, "-m", "benchmarks.sinks.refusing", str(refusals), str(port)]
        sink = stack.enter_context(start("refusing-sink", argv, at.logs, cwd=TREE))
        wait_until(lambda: listeners(port) > 0 or not sink.running(), 20, "the sink to listen")
        place = stack.enter_context(at.place(port))
        server = Counted(extras=variant.extras(AGAIN), provider=variant.provider)
        stack.callback(server.close)
        server.start(place)
        time.sleep(2.0)  # until segments have been made ahead
        trial = Trial(at.logs, SMALL)
        stack.callback(trial.close)
        before, device = server.counts(), device_bytes(place.queue)
        generator = trial.start_generator(server.port, messages, DEFERRED_RATE, 1)
        if generator.wait(DEFERRED_TIMEOUT_S):
            raise TrialError(generator.complaint())

        def attempts() -> int:
            return sum(map(len, parse_refusals(refusals.read_bytes()).values())) if refusals.exists() else 0

        wanted = messages * (DEFERRALS + 1)
        wait_until(lambda: attempts() >= wanted, DEFERRED_TIMEOUT_S, f"{wanted} attempts", 1.0)
        time.sleep(SETTLE_S)
        counts, stored = server.counts().minus(before), sum(message.size_bytes for message in trial.sent()[0])
        written = device_bytes(place.queue) - device
        used = used_bytes(place.queue)
        trial.sent_path.unlink(missing_ok=True)
        server.stop()
    return {
        "barriers/msg": counts.barriers / messages,
        "device KiB/msg": written / messages / 1024,
        "disk MiB": used / 2**20,
        "contents MiB": stored / 2**20,
    }


def measure_drain(at: Stage, variant: Variant, options: argparse.Namespace, name: str) -> dict[str, float]:
    """A backlog that flows off. Raises: TrialError."""
    argv = ["--provider", variant.provider.name, "--messages", str(options.backlog)]
    drained = drain.turn(drain.arguments().parse_args(argv), at, "ours", variant.extras())
    return {"filled/s": drained.messages / drained.fill_s, "drained/s": drained.per_s, "new mail p95 s": drained.p95_s}


def measure_start(at: Stage, variant: Variant, options: argparse.Namespace, name: str) -> dict[str, float]:
    """A start over a large queue. Raises: TrialError."""
    argv = ["--provider", variant.provider.name, "--starts", "1", "--smtp-up-to", "0"]
    given = start_flatness.arguments().parse_args(argv)
    measured = start_flatness.measure(given, at, options.deferred, variant.extras())
    one, counting = measured.starts[0], measured.counting
    assert counting is not None
    return {
        "imports s": one.import_s,
        "first 220 s": one.greeting_s,
        "fresh message s": one.fresh_s,
        "due entry s": one.entry_s,
        "PSS MB": max(one.pss_bytes, one.pss_later_bytes) / 1e6,
        "count s": counting.quiet_s,
        "share beside a count": counting.share,
    }


Measure = Callable[[Stage, Variant, argparse.Namespace, str], Mapping[str, float]]
MEASURES: dict[str, Measure] = {
    **{name: measure_load for name in PARTS if "/" in name},
    "deferrals": measure_deferrals,
    "drain": measure_drain,
    "start": measure_start,
}


def run(options: argparse.Namespace, at: Stage, kept: Kept) -> None:
    """All that is not measured yet. Raises: TrialError."""
    parts = options.only or list(PARTS)
    variants = [VARIANTS[name] for name in options.variant or VARIANTS]
    for kind in options.file_system or [kind.value for kind in FileSystem]:
        wanted = [(turn, part, variant) for turn in range(options.runs) for part in parts for variant in variants]
        wanted = [one for one in wanted if len(kept.of(Key(kind, one[1], one[2].name))) <= one[0]]
        if not wanted:
            continue
        with ground(at, FileSystem(kind), SIZE_MB) as own:
            for turn, part, variant in wanted:
                began_s = time.monotonic()
                kept.add(Key(kind, part, variant.name), MEASURES[part](own, variant, options, part))
                say(f"{kind} {part} {variant.name} {turn + 1}/{options.runs}: {time.monotonic() - began_s:.0f} s")


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choose", description="All queues, side by side.")
    parser.add_argument("--only", action="append", choices=list(PARTS), help="which part (default: all)")
    parser.add_argument("--variant", action="append", choices=list(VARIANTS), help="which queue (default: all)")
    kinds = [kind.value for kind in FileSystem]
    parser.add_argument("--file-system", action="append", choices=kinds, help="which (default: both)")
    parser.add_argument("--runs", type=int, default=1, help="of each (default: 1)")
    parser.add_argument("--less", type=int, default=1, help="so many times fewer messages than other benchmarks have")
    parser.add_argument("--backlog", type=int, default=20_000, help="messages of the backlog (default: 20000)")
    parser.add_argument("--deferred", type=int, default=100_000, help="entries of a start (default: 100000)")
    parser.add_argument("--record", type=Path, help="figures are kept there; those that are there are not measured again")
    parser.add_argument("--write", type=Path, help="directory for the drawings")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the images lie (default: /var/tmp)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0, or 1 when a part failed (what was measured until then is shown)."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    kept, code = Kept(options.record), 0
    try:
        with stage(options.directory) as at:
            run(options, at, kept)
    except (TrialError, KeyboardInterrupt) as e:
        say(f"stopped: {e or 'interrupted'}")
        code = 1
    print(markdown(kept), flush=True)
    if options.write:
        for name, text in draw(kept).items():
            (options.write / name).write_text(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
