"""Nothing lost by kill -9 or power cuts: `python -m benchmarks.kill_loop [--power-cut]`.

A numbered generator sends without pause; at random moments the server's whole process group is killed and started again
on the same queue and port. In the end every acknowledged recipient has arrived with its content, and what arrived twice
had been answered by the sink in the last second before a kill (or was answered to the dead), or not at all. With
`--power-cut` the queue lies on a file system of its own that loses everything not durable between kill and restart.

With `--next-hop down` nobody listens until the generator has ended and the last kill is over: then the sink comes up and
everything is flushed. With `--next-hop flaky` the sink is in all kinds of trouble until then (`flaky_sink`), and what is
deferred is tried again after a second.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.power import CuttableDisk
from benchmarks.processes import TrialError, free_port, wait_until
from benchmarks.servers import Extras, Other, Ours, Place, Server
from benchmarks.stage import file_system, say, stage
from benchmarks.trial import MIXES, Follower, Mix, NextHop, Trial, administer, keep, left_in_queue, queue_counts, trial
from benchmarks.verdict import Outage, Verdict, judge

JITTER_S = 0.3
MAX_FLUSHES, FLUSH_IDLE_S = 3, 8.0
SOON = Extras(queue="<retry_delays>1s</retry_delays>")


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill_loop", description="Nothing lost by kill -9.")
    parser.add_argument("--mix", action="append", choices=sorted(MIXES), help="which (default: both)")
    parser.add_argument("--messages", type=int, default=10000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--rate", type=float, default=300.0, help="messages a second at most")
    parser.add_argument("--seed", type=int, default=0, help="of sizes and moments (default: from the clock, and shown)")
    hops = [hop.value for hop in NextHop]
    parser.add_argument("--next-hop", choices=hops, default="up", help="the sink until the last kill is over (default: up)")
    parser.add_argument("--power-cut", action="store_true", help="lose what is not durable at each kill (root)")
    parser.add_argument("--disk-mb", type=int, default=6000, help="size of the file system for --power-cut (a sparse file)")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for sending, and again for draining")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queue lies")
    parser.add_argument(
        "--keep", type=Path, help="a new directory for the server's logs and the records, for a look afterwards"
    )
    parser.add_argument("--other", metavar="COMMAND", help="another server, with {port} {relay} {queue} {directory}")
    return parser


def run(options: argparse.Namespace, mix: Mix, seed: int) -> tuple[Verdict, dict[str, int], int]:
    """The verdict, what was left in the queue, and how many flushes it took. Raises: TrialError."""
    rng, next_hop = random.Random(seed), NextHop(options.next_hop)
    if options.other and next_hop is NextHop.DOWN:
        raise TrialError("another server can't be flushed: --next-hop up or flaky")
    moments = sorted(rng.randrange(options.messages) for _ in range(options.kills))
    outages: list[Outage] = []
    with contextlib.ExitStack() as stack:
        at = stack.enter_context(stage(options.directory))
        made = stack.enter_context(trial(at.root, mix, next_hop, seed))
        if options.keep is not None:
            stack.callback(keep, at, made, options.keep / mix.name.replace(" ", "-"))
        directory = at.root / "server"
        directory.mkdir(mode=0o711)
        disk = stack.enter_context(CuttableDisk(at.root, options.disk_mb)) if options.power_cut else None
        queue = (disk.mount_point if disk else directory) / "queue"
        server: Server = Other(options.other) if options.other else Ours(extras=SOON if next_hop is NextHop.FLAKY else None)
        stack.callback(server.close)
        place = Place(directory, queue, at.logs, made.sink_port, free_port())
        server.start(place)
        say(
            f"{options.messages} messages, {mix.name}, next hop {next_hop.value}, seed {seed}, queue on {file_system(queue)}"
        )
        generator = made.start_generator(server.port, options.messages, options.rate, seed)
        progress, deadline_s = Follower(made.sent_path), time.monotonic() + options.timeout
        for moment in moments:
            while progress.look() < moment and generator.running():
                if time.monotonic() > deadline_s:
                    raise TrialError(f"the generator is at {progress.count} of {options.messages}: {generator.complaint()}")
                time.sleep(0.005)
            time.sleep(rng.random() * JITTER_S)
            server.kill()
            killed_at_s = time.monotonic()
            if disk is not None:
                disk.cut()
            server.start(place)
            outages.append(Outage(killed_at_s, time.monotonic()))
            down_s = outages[-1].ready_at_s - killed_at_s
            say(f"kill {len(outages)} at message {progress.look()}, ready again after {down_s:.2f} s")
        if generator.wait(max(1.0, deadline_s - time.monotonic())):
            raise TrialError(generator.complaint())
        made.relieve()
        if next_hop is NextHop.DOWN and isinstance(server, Ours):
            flushes = flush_all(server, made, options.timeout)
        else:
            flushes = 0
            say(f"drained; missing: {made.drain(options.timeout)}")
        left = left_in_queue(server)
        server.stop()
        made.sink.stop()
        return judge(*made.sent(), made.deliveries(), outages), left, flushes


def flush_all(server: Ours, made: Trial, timeout_s: float) -> int:
    """Flushes until all has arrived, at most `MAX_FLUSHES` times; gives how often that was. One must be enough."""
    wait_until(lambda: not queue_counts(server)["incoming"], timeout_s, "every message to be tried once", 0.5)
    flushes, missing = 0, 1
    while missing and flushes < MAX_FLUSHES:
        flushes += 1
        say(f"the next hop is up; {administer(server, 'queue', 'flush').decode().strip()}")
        missing = made.drain(timeout_s, FLUSH_IDLE_S)
        say(f"drained; missing: {missing}")
    return flushes


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when nothing was lost and nothing doubled without a reason."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    good = True
    for name in options.mix or MIXES:
        seed = options.seed or time.time_ns() % 1000000
        try:
            verdict, left, flushes = run(options, MIXES[name], seed)
        except TrialError as e:
            say(f"stopped: {e}")
            return 1
        what = f"{options.kills} x {'power cut' if options.power_cut else 'kill -9'}, {MIXES[name].name}"
        what += f", next hop {options.next_hop}, seed {seed}"
        print(verdict.markdown(what))
        print(f"\nentries left in the queue: {left or 'not asked'}")
        if flushes:
            print(f"flushes until the queue was empty: {flushes}{' (**one must be enough**)' if flushes > 1 else ''}")
        for number, index, at_s in verdict.unexplained[:10]:
            print(f"unexplained: message {number}, recipient {index}, first answered at {at_s:.3f}")
        if verdict.lost:
            print(f"lost: {verdict.lost[:20]}")
        for reply, count in verdict.refusals[:5]:
            print(f"refused {count}: {reply}")
        if verdict.torn:
            print(f"only some recipients: {verdict.torn[:20]}")
        good = good and verdict.good and not any(left.values()) and flushes <= 1
        print("good" if good else "**not good**", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
