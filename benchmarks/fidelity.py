"""Every message once and byte for byte: `python -m benchmarks.fidelity`.

10,000 numbered messages of 0 to 5 MB and 1 to 50 recipients at full speed through the server into a recording sink; then
each recipient has arrived once, with the content that was sent, and the queue is empty.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results.verdict import judge
from benchmarks.stage.directories import file_system, stage
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen
from benchmarks.stage.servers import Other, Ours, Place, Server
from benchmarks.stage.trial import MIXES, keep, left_in_queue, trial
from tests.support.processes import TrialError


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description="Each message once, byte for byte.")
    add_option(parser)
    parser.add_argument("--messages", type=int, default=10000)
    parser.add_argument("--mix", choices=sorted(MIXES), default="any")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.0, help="messages a second (default: as fast as it goes)")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for sending, and again for draining")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queue lies")
    parser.add_argument(
        "--keep", type=Path, help="a new directory for the server's logs and the records, for a look afterwards"
    )
    parser.add_argument("--other", metavar="COMMAND", help="another server, with {port} {relay} {queue} {directory}")
    return parser


def run(options: argparse.Namespace) -> bool:
    """Whether everything was as it should be. Raises: TrialError."""
    with contextlib.ExitStack() as stack:
        at = stack.enter_context(stage(options.directory))
        made = stack.enter_context(trial(at.root, MIXES[options.mix]))
        if options.keep is not None:
            stack.callback(keep, at.logs, made, options.keep)
        server: Server = Other(options.other) if options.other else Ours(provider=chosen(options))
        stack.callback(server.close)
        directory = at.root / "server"
        directory.mkdir(mode=0o711)
        server.start(Place(directory, directory / "queue", at.logs, made.sink_port))
        say(f"{options.messages} messages, {made.mix.name}, queue on {file_system(directory)}")
        began_s = time.monotonic()
        generator = made.start_generator(server.port, options.messages, options.rate, options.seed)
        if generator.wait(options.timeout):
            raise TrialError(generator.complaint())
        sent_s = time.monotonic()
        made.drain(options.timeout)
        drained_s = time.monotonic()
        left = left_in_queue(server)
        server.stop()
        made.sink.stop()
        verdict = judge(*made.sent(), made.deliveries())
    print(verdict.markdown(f"{server.name}: {made.mix.name}"))
    print(f"\nsent in {sent_s - began_s:.1f} s, all arrived after {drained_s - began_s:.1f} s")
    print(f"entries left in the queue: {left or 'not asked'}")
    complete = verdict.acknowledged_messages == options.messages and not verdict.unacknowledged_arrived
    return verdict.good and complete and not any(left.values())


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when all is well."""
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
