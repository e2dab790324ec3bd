"""No 250 before its barrier: `python -m tests.durability.harness.sync_check`.

The server runs under strace, which stops it only at the calls that matter; a generator sends over 50 sessions, and the
trace is judged (`order`). Beside the verdict stand barriers and files a message, from the first batch until the sink has
the last message and a clean stop.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results.report import table
from benchmarks.stage.directories import stage
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen, links
from benchmarks.stage.servers import Extras, Ours, Place
from benchmarks.stage.trial import MIXES, left_in_queue, trial
from tests.durability.harness.chunk_order import ChunkOrder
from tests.durability.harness.order import CALLS, FileOrder, Findings, Order
from tests.durability.harness.trace import command, events
from tests.support.processes import TrialError

ORDERS = {"clustered": Order, "log": Order, "chunk": ChunkOrder, "naive": FileOrder}
"""The rule of the 250, by provider."""

MOST_BYTES = 512
"""Of each buffer that strace prints: heads of records and replies are at its beginning."""


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.durability.harness.sync_check", description="No 250 before its barrier."
    )
    add_option(parser)
    parser.add_argument(
        "--mix", action="append", choices=sorted(MIXES), help="sizes and recipients (default: small, varied)"
    )
    parser.add_argument("--messages", type=int, default=3000)
    parser.add_argument("--rate", type=float, default=0.0, help="messages a second at most (default: as fast as it goes)")
    parser.add_argument("--hardlinks", choices=["N", "Y"], default="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for sending, and again for draining")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queue lies")
    parser.add_argument("--keep", type=Path, help="a new file for the trace")
    return parser


def run(options: argparse.Namespace, mix: str) -> Findings:
    """What a run of this mix has shown. Raises: TrialError."""
    with contextlib.ExitStack() as stack:
        at = stack.enter_context(stage(options.directory))
        made = stack.enter_context(trial(at.root, MIXES[mix]))
        server = Ours(extras=Extras(spool=links(options)), provider=chosen(options))
        stack.callback(server.close)
        directory, trace = at.root / "server", options.keep or at.logs / "trace"
        directory.mkdir(mode=0o711)
        place = Place(directory, directory / "queue", at.logs, made.sink_port)
        server.start(place, command(str(trace), CALLS, MOST_BYTES))
        generator = made.start_generator(server.port, options.messages, options.rate, options.seed)
        if generator.wait(options.timeout):
            raise TrialError(generator.complaint())
        missing = made.drain(options.timeout)
        left = left_in_queue(server)
        server.stop()
        acknowledged, unanswered = made.sent()
        if unanswered or missing or any(left.values()) or len(acknowledged) != options.messages:
            raise TrialError(f"{len(acknowledged)} acknowledged, {len(unanswered)} not, {missing} missing, left {left}")
        with trace.open(encoding="latin-1") as lines:
            return ORDERS[options.provider]().feed(events(lines))


def row(name: str, findings: Findings, made: Sequence[str]) -> list[str]:
    """Cells of the table; per message but for the first."""
    messages = max(1, findings.answers)
    per_message = [findings.total_barriers, findings.batches]
    per_message += [findings.created.get(ending, 0) for ending in made] + [findings.linked]
    calls = ", ".join(f"{call} {count}" for call, count in sorted(findings.barriers.items()))
    return [name, str(findings.answers), str(len(findings.breaches)), *(f"{n / messages:.3f}" for n in per_message), calls]


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0 when each 250 was sent after its barrier."""
    options = arguments().parse_args(argv)
    rows, good = [], True
    made = chosen(options).made
    for mix in options.mix or ("small", "varied"):
        try:
            findings = run(options, mix)
        except TrialError as e:
            say(f"stopped: {e}")
            return 1
        rows.append(row(f"{MIXES[mix].name}, hardlinks {options.hardlinks}", findings, made))
        for breach in findings.breaches[:20]:
            print(breach)
        good = good and not findings.breaches and findings.answers == options.messages
    header = [
        "50 sessions",
        "250s",
        "before their barrier",
        "barriers/msg",
        "batches/msg",
        *(f"{ending}/msg" for ending in made),
    ]
    print(table([*header, "links/msg", "barriers"], rows))
    print("good" if good else "**not good**", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
