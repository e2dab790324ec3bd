"""No loss by `kill -9`, power cuts or clean stops: `python -m tests.durability.harness.kill_loop [--power-cut ext4|xfs]`.

A numbered generator sends without pause while the server's processes are killed at random moments, in their start too, and
started again on the same queue; now and then it is stopped by SIGTERM. With `--power-cut` queue and spool lie on a
file system of their own, which loses at each kill what was not durable. A round is a handful of kills, then a drain into a
sink that has written down what came (`rounds`); the next hop is up, down and in trouble in turn, and the checkpoints come
as often as they do by default, or ten times as often. With `--acts` an administrator acts on the queue meanwhile.

Rules: each round is printed, and with `--record` written to a file with which a run that was cut off goes on. The first bad
round ends the run; `--keep` keeps what can be looked at. With `--no-barriers` the loop must find losses: that shows that
it can.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.stage.directories import file_system, stage
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen, links
from benchmarks.stage.servers import Extras, Other, Ours, Single
from benchmarks.stage.trial import MIXES, NextHop, Trial, keep, trial
from tests.durability.harness.operator import NO_REPORTS
from tests.durability.harness.rounds import Ground, Outcome, Plan, Round, Step, in_turn
from tests.durability.harness.tally import Figures, Record
from tests.support.power import FileSystem, LoopDisk
from tests.support.processes import TrialError

IN_START_SHARE = 0.2
"""Of the kills, those in a start."""
SOON = "<retry_delays>1s</retry_delays>"


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.durability.harness.kill_loop",
        description="Nothing lost by kill -9, power cuts or clean stops.",
    )
    add_option(parser)
    parser.add_argument(
        "--kills", type=int, default=10, help="in all, those of --record included; 0: one round of clean stops"
    )
    parser.add_argument("--a-round", type=int, default=10, help="kills a round")
    parser.add_argument("--stops", type=int, default=2, help="clean stops a round")
    hops = [hop.value for hop in NextHop]
    parser.add_argument("--next-hop", choices=["turn", *hops], default="turn", help="what the sink is like (default: turn)")
    parser.add_argument("--hardlinks", choices=["N", "Y"], default="N")
    parser.add_argument("--power-cut", choices=[kind.value for kind in FileSystem], help="cut the power at each kill (root)")
    parser.add_argument("--no-barriers", action="store_true", help="make the server's barriers do nothing (strace)")
    parser.add_argument("--mix", choices=sorted(MIXES), default="varied", help="sizes and recipients (default: varied)")
    parser.add_argument("--rate", default="100-1000", help="messages a second at most; a range: each round its own")
    parser.add_argument("--longest", type=float, default=2.0, help="seconds of load between two kills at most")
    parser.add_argument("--least", type=int, default=0, help="messages acknowledged between two kills at least")
    parser.add_argument("--acts", action="store_true", help="an administrator acts on the queue meanwhile")
    parser.add_argument("--seed", type=int, default=0, help="of sizes, moments and order (default: from the clock)")
    parser.add_argument("--disk-mb", type=int, default=4000, help="size of the file system for --power-cut (a sparse file)")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for each drain")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queue lies")
    parser.add_argument("--record", type=Path, help="a file for the figures of each round; a later run goes on with it")
    parser.add_argument("--keep", type=Path, help="a new directory for queue, logs and records of a bad round")
    parser.add_argument("--other", metavar="COMMAND", help="another server, with {port} {relay} {queue} {directory}")
    return parser


def settings(options: argparse.Namespace) -> dict[str, object]:
    """What rounds must have in common to be counted together."""
    how = f"power cut, {options.power_cut}" if options.power_cut else f"kill -9, {file_system(options.directory)}"
    barriers = ", no barriers" if options.no_barriers else ""
    return {
        "how": how + barriers,
        "hardlinks": options.hardlinks,
        "mix": options.mix,
        "server": options.other or f"ours, {options.provider}",
        **({"acts": True} if options.acts else {}),
    }


def plan_round(options: argparse.Namespace, number: int, kills: int, seed: int) -> Plan:
    """The round of this number. Raises: ValueError for a rate that is none."""
    rng = random.Random(seed)
    hops = list(NextHop)
    next_hop = hops[number % len(hops)] if options.next_hop == "turn" else NextHop(options.next_hop)
    slowest, _, fastest = str(options.rate).partition("-")
    low, high = float(slowest), float(fastest or slowest)
    in_start = sum(rng.random() < IN_START_SHARE for _ in range(kills - 1))  # one at least under load
    steps = [Step.KILL_IN_START] * in_start + [Step.KILL] * (kills - in_start) + [Step.STOP] * options.stops
    queue = SOON if next_hop is NextHop.FLAKY else ""
    queue += chosen(options).hurried if number // len(hops) % 2 else ""
    spool = links(options)
    return Plan(
        number=number,
        mix=MIXES[options.mix],
        next_hop=next_hop,
        rate=round(low * (high / low) ** rng.random()) if high > low else low,
        steps=in_turn(steps, rng),
        longest_s=options.longest,
        least=options.least,
        extras=Extras(queue=queue, spool=spool, report=NO_REPORTS if options.acts else ""),
        seed=seed,
        timeout_s=options.timeout,
        has_acts=options.acts,
    )


def play(ground: Ground, plan: Plan, kept: Path | None) -> Outcome:
    """One round; a bad one is kept. Raises: TrialError."""
    directory, logs = ground.at.root / f"round-{plan.number}", ground.at.logs / f"round-{plan.number}"
    for path in (directory, logs):
        path.mkdir(mode=0o755)
    with trial(directory, plan.mix, plan.next_hop, plan.seed) as made:
        try:
            outcome = Round(ground, plan, made, logs).run()
        except TrialError:
            keep_all(ground, logs, made, kept)
            raise
        if not outcome.good:
            keep_all(ground, logs, made, kept)
    for path in (directory, logs):
        shutil.rmtree(path, ignore_errors=True)
    return outcome


def keep_all(ground: Ground, logs: Path, made: Trial, kept: Path | None) -> None:
    """Copies what can be looked at to a new directory, if there is to be one; no server runs afterwards."""
    ground.server.kill()
    if kept is not None:
        keep(logs, made, kept)
        shutil.copytree(ground.home, kept / "home")


def describe(plan: Plan, figures: Figures) -> str:
    """One line about a round."""
    what = f"round {plan.number}, next hop {plan.next_hop.value}, {plan.rate:.0f}/s, seed {plan.seed}: "
    what += f"{figures.kills} kills, {figures.stops} stops, {figures.messages} messages, lost {figures.lost}, "
    what += f"wrong {figures.wrong}, torn {figures.torn}, doubled {figures.doubled} ({figures.doubled_at_kills} at kills, "
    what += f"{figures.allowed:.0f} allowed, the oldest {figures.oldest_doubled_s * 1000:.0f} ms before; "
    what += f"{figures.doubled_unanswered} unanswered; {figures.unexplained} unexplained), "
    if plan.has_acts:
        what += f"{figures.acts} acts and undoings, {figures.acts_cut_off} cut off, {figures.acted} entries acted on, "
    return what + f"refused {figures.refused_messages}, {figures.seconds:.0f} s"


def tell(outcome: Outcome) -> None:
    """What was bad in a round."""
    verdict = outcome.verdict
    print(f"lost (message, recipient): {verdict.lost[:20]}; wrong: {verdict.wrong[:20]}; torn: {verdict.torn[:20]}")
    for number, index, at_s in verdict.unexplained[:10]:
        print(f"unexplained: message {number}, recipient {index}, first answered at {at_s:.3f}")
    if outcome.acted is not None:
        print(f"acts: {outcome.acted}")
    print(
        f"left: {outcome.left}, flushes: {outcome.flushes}, set aside: {outcome.corrupt_files}, stray: {outcome.stray_files}"
    )
    for line in outcome.complaints[:10]:
        print(line)
    for reply, count in verdict.refusals[:5]:
        print(f"refused {count}: {reply}")


def run(options: argparse.Namespace, record: Record) -> None:
    """All rounds that are still to be done, one by one into the record; ends with the first bad one. Raises: TrialError."""
    if options.other and options.acts:
        raise TrialError("another server knows no acts")
    if options.other and options.next_hop in ("turn", "down"):
        raise TrialError("another server can't be flushed: --next-hop up or flaky")
    rng = random.Random(options.seed or time.time_ns())
    with contextlib.ExitStack() as stack:
        at = stack.enter_context(stage(options.directory))
        disk = None
        if options.power_cut:
            disk = stack.enter_context(LoopDisk(at.root, options.disk_mb, FileSystem(options.power_cut)))
        server: Single = Other(options.other) if options.other else Ours(provider=chosen(options))
        stack.callback(server.close)
        ground = Ground(at, server, disk, not options.no_barriers)
        while record.kills < options.kills or not record.rows:
            number = len(record.rows)
            plan = plan_round(options, number, min(options.a_round, options.kills - record.kills), rng.randrange(1 << 30))
            began_s = time.monotonic()
            kept = None if options.keep is None else options.keep / f"round-{number}-{plan.seed}"
            outcome = play(ground, plan, kept)
            figures = Figures.of(plan, outcome, time.monotonic() - began_s)
            record.add(plan, figures)
            say(describe(plan, figures))
            if not outcome.good:
                tell(outcome)
                break


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when nothing was lost and nothing doubled without a reason."""
    options = arguments().parse_args(argv)
    record, is_whole = Record(options.record, settings(options)), False
    try:
        run(options, record)
        is_whole = True
    except TrialError as e:
        say(f"stopped: {e}")
    finally:
        total = record.total()
        print(record.markdown(f"{settings(options)['how']}, hardlinks {options.hardlinks}"))
        if not total.is_within_p4:
            print(f"\ndoubled at kills: {total.doubled_at_kills}, allowed {total.allowed:.0f}")
        print("good" if total.good and is_whole else "**not good**", flush=True)
    return 0 if total.good and is_whole else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
