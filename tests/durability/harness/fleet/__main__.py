"""Nothing lost by the trouble of a server of several: `python -m tests.durability.harness.fleet --kills 10`.

See `docs/harnesses`. Exit codes: 0 every promise was kept, 1 not, 69 the services are not up or the machine can't do it.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from benchmarks.stage.directories import stage
from benchmarks.stage.progress import say
from benchmarks.stage.trial import NextHop
from tests.durability.harness.fleet.bed import NAMES, Bed, Wanted, bed, facts_of_services
from tests.durability.harness.fleet.faulty import FAULTS
from tests.durability.harness.fleet.round import Outcome, Plan, Round
from tests.durability.harness.fleet.services import ALL, ALL_NODES, NODES_TRIED, ServicesRound
from tests.durability.harness.fleet.trouble import Kind
from tests.durability.harness.fleet.wires import SERVICES, Way, lacks_wires
from tests.support.processes import TrialError

CUTS = [*(((service,), Way.BOTH) for service in SERVICES), (SERVICES, Way.BOTH), (SERVICES, Way.TO), (SERVICES, Way.FROM)]
CUTS += [((service,), Way.FROM) for service in SERVICES] + [((service,), Way.TO) for service in SERVICES]


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.durability.harness.fleet", description="Nothing lost by the trouble of a server of several."
    )
    parser.add_argument("--servers", type=int, choices=range(2, len(NAMES) + 1), default=2)
    parser.add_argument("--kills", type=int, default=0, help="kill -9; started again at once")
    parser.add_argument("--heirs", type=int, default=0, help="kill -9; started again once the others have all it had")
    parser.add_argument("--freezes", type=int, default=0, help="SIGSTOP")
    parser.add_argument("--cuts", type=int, default=0, help="from each service, all, and one way, in turn (root)")
    parser.add_argument("--terms", type=int, default=0, help="SIGTERM")
    parser.add_argument("--flushes", type=int, default=0, help="of what is deferred, and under way for long (no trouble)")
    parser.add_argument("--services", action="store_true", help="services are in trouble, not servers: each in each way")
    text = "one node of a service is in trouble: of RabbitMQ and Cassandra, killed and frozen (services up --replicated)"
    parser.add_argument("--replicated", action="store_true", help=text)
    text = "one of these, as kill-swift, freeze-rabbitmq-3"
    parser.add_argument("--only", action="append", default=[], metavar="DEED-SERVICE", help=text)
    parser.add_argument(
        "--frozen", type=float, default=60.0, metavar="SECONDS", help="of a SIGSTOP, of a service's trouble (60)"
    )
    parser.add_argument("--cut", type=float, default=45.0, metavar="SECONDS", help="of a cut (default: 45)")
    parser.add_argument("--held", type=float, default=0.5, metavar="SECONDS", help="the victim's next hop stands still")
    text = "before a trouble, in which what was answered may come again (default: 1; more on a busy machine)"
    parser.add_argument("--settled", type=float, default=1.0, metavar="SECONDS", help=text)
    parser.add_argument("--slow", choices=SERVICES, default="", help="answers late while there is load")
    parser.add_argument("--a-round", type=int, default=10, help="troubles a round")
    parser.add_argument("--rate", type=float, default=15.0, help="messages a second, to each server")
    parser.add_argument("--longest", type=float, default=4.0, help="seconds of load between two troubles at most")
    parser.add_argument("--next-hop", choices=["turn", "up", "flaky"], default="turn", help="default: in turn")
    parser.add_argument("--seed", type=int, default=0, help="default: from the clock")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds for each drain")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="for the servers' own directories")
    parser.add_argument("--record", type=Path, help="a file to which the figures of each round are appended")
    parser.add_argument("--keep", type=Path, help="a new directory for logs and records of a bad round")
    parser.add_argument("--fault", choices=[*FAULTS], default="", help="run servers that must lose or double: see `faulty`")
    return parser


def planned(options: argparse.Namespace, rng: random.Random) -> list[tuple[Kind, str, tuple[str, ...], Way]]:
    """All troubles, in a random order, the victims in turn."""
    counts = {Kind.KILL: options.kills, Kind.HEIR: options.heirs, Kind.FREEZE: options.freezes, Kind.TERM: options.terms}
    counts[Kind.FLUSH] = options.flushes
    kinds = [(kind, (), Way.BOTH) for kind, count in counts.items() for _ in range(count)]
    all_kinds = kinds + [(Kind.CUT, *cut) for cut in itertools.islice(itertools.cycle(CUTS), options.cuts)]
    rng.shuffle(all_kinds)
    names = itertools.cycle(NAMES[: options.servers])
    return [(kind, next(names), services, way) for kind, services, way in all_kinds]


def rounds(options: argparse.Namespace) -> Iterator[tuple[Plan, NextHop, Outcome]]:
    """Play round by round. Raises: TrialError."""
    facts_of_services()
    lacking = lacks_wires() if options.cuts else None
    if lacking:
        raise TrialError(lacking)
    seed = options.seed or time.time_ns() % (1 << 30)
    rng = random.Random(seed)
    todo = planned(options, rng)
    hops = [NextHop.UP, NextHop.FLAKY] if options.next_hop == "turn" else [NextHop(options.next_hop)]
    for number, at in enumerate(range(0, len(todo), options.a_round)):
        troubles = todo[at : at + options.a_round]
        times = (options.rate, options.longest, options.frozen, options.cut)
        plan = Plan(troubles, *times, rng.randrange(1 << 30), options.timeout, options.held, options.settled, options.slow)
        hop = hops[number % len(hops)]
        has_wires = any(kind is Kind.CUT for kind, *_ in troubles)
        with stage(options.directory) as place:
            wanted = Wanted(options.servers, hop, has_wires, plan.seed, options.fault)
            kept = options.keep
            with bed(place.root, place.logs, wanted) as made, kept_if_bad(made, place.logs, kept, plan.seed) as shown:
                outcome = Round(made, plan, place.logs).run()
                shown.append(outcome)
        yield plan, hop, outcome


def try_services(options: argparse.Namespace) -> bool:
    """All troubles of services, or of their nodes, in one round. Return whether it was good. Raises: TrialError."""
    facts_of_services(are_replicated=options.replicated)
    known, usual = (ALL_NODES, NODES_TRIED) if options.replicated else (ALL, ALL)
    todo = [(deed, service) for deed, service in known if f"{deed}-{service}" in options.only] or usual
    seed = options.seed or time.time_ns() % (1 << 30)
    plan = Plan([], options.rate, options.longest, options.frozen, options.cut, seed, options.timeout)
    wanted, kept = Wanted(options.servers, NextHop.UP, False, seed, options.fault), options.keep
    with (
        stage(options.directory) as place,
        bed(place.root, place.logs, wanted) as made,
        kept_if_bad(made, place.logs, kept, seed) as shown,
    ):
        outcome, reactions = ServicesRound(made, plan, place.logs).play(todo, options.frozen)
        slow = [one for one in reactions if one.is_slow(has_others=options.replicated)]
        if not slow:
            shown.append(outcome)
    doubled = {trouble.what: outcome.verdict.excused.get(at, 0) for at, trouble in enumerate(outcome.troubles)}
    for reaction in reactions:
        add_to(options.record, {**attrs.asdict(reaction), "doubled": doubled[f"{reaction.deed} {reaction.service}"]})
    add_to(options.record, {"services": True, "replicated": options.replicated, "seed": seed, **figures(outcome)})
    tell(outcome)
    for one in slow:
        print(f"slow: {one}")
    return outcome.is_good and not slow


def add_to(record: Path | None, row: Mapping[str, object]) -> None:
    """Tell figures, and keep them."""
    say(json.dumps(row))
    if record is not None:
        with record.open("a") as file:
            file.write(json.dumps(row) + "\n")


def tell(outcome: Outcome) -> None:
    """What was bad in a round."""
    for name, found in outcome.verdict.faults.items():
        print(f"{name}: {list(found)[:20]}")
    for line in outcome.complaints[:10]:
        print(line)


@contextlib.contextmanager
def kept_if_bad(made: Bed, logs: Path, kept: Path | None, seed: int) -> Iterator[list[Outcome]]:
    """Logs and records of a round are kept if it ends without a good outcome in the list."""
    outcomes: list[Outcome] = []
    try:
        yield outcomes
    finally:
        if kept is not None and not (outcomes and outcomes[0].is_good):
            place = kept / f"round-{seed}"
            shutil.copytree(logs, place)
            for member in made.members:
                for path in filter(Path.exists, (member.trial.sent_path, member.trial.sink_path)):
                    shutil.copy(path, place / f"{member.name}.{path.name}")
            (place / "troubles").write_text("".join(f"{one}\n" for outcome in outcomes for one in outcome.troubles))


def figures(outcome: Outcome) -> dict[str, object]:
    """Of a round, for its record."""
    verdict, kinds = outcome.verdict, [trouble.kind for trouble in outcome.troubles]
    doubled = {kind.value: 0 for kind in Kind}
    for place, count in verdict.excused.items():
        doubled[outcome.troubles[place].kind.value] += count
    took = {kind.value: 0.0 for kind in Kind}
    well = {kind.value: 0.0 for kind in Kind}
    for place, trouble in enumerate(outcome.troubles):
        name = trouble.kind.value
        took[name] = max(took[name], round(verdict.takeover_s[place], 1))
        well[name] = max(well[name], round(trouble.well_s - trouble.ended_s, 1))
    return {
        "troubles": {kind.value: kinds.count(kind) for kind in Kind if kind in kinds},
        "messages": verdict.messages,
        "entries": verdict.entries,
        "in_doubt": verdict.in_doubt,
        "refused": dict(verdict.refusals),
        "faults": {name: len(found) for name, found in verdict.faults.items()},
        "doubled": {name: count for name, count in doubled.items() if count},
        "oldest_s": round(verdict.oldest_s, 2),
        "settled_s": round(max(verdict.settled_s.values(), default=0.0), 2),
        "doubled_unanswered": verdict.unanswered,
        "takeover_s": {name: value for name, value in took.items() if value},
        "well_s": {name: value for name, value in well.items() if value},
        "left": outcome.left,
        "complaints": len(outcome.complaints),
        "slow": list(outcome.slow),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Give the exit code."""
    options = arguments().parse_args(argv)
    is_good = True
    try:
        are_services = options.services or options.replicated
        if are_services:
            is_good = try_services(options)
        for plan, hop, outcome in () if are_services else rounds(options):
            add_to(options.record, {"next_hop": hop.value, "seed": plan.seed, "fault": options.fault, **figures(outcome)})
            tell(outcome)
            is_good = is_good and outcome.is_good
            if not is_good and not options.fault:
                break
    except TrialError as error:
        print(error, file=sys.stderr)
        return os.EX_UNAVAILABLE if "not up" in str(error) or "needs" in str(error) else 1
    print("good" if is_good else "**not good**", flush=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
