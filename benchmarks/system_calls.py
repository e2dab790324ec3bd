"""System calls a message by kind: `python -m benchmarks.system_calls`. What is counted: docs/benchmarks.md."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence

from benchmarks.measure.system_calls import SystemCalls, count_system_calls, kinds_table
from benchmarks.results.workloads import WORKLOADS
from benchmarks.stage.contenders import add_options, contenders
from benchmarks.stage.directories import stage
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen
from tests.support.processes import TrialError

DEFAULT = ("W1", "W2", "W3")


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.system_calls", description="System calls a message by kind.")
    add_option(parser)
    add_options(parser)
    parser.add_argument("--workload", action="append", choices=sorted(WORKLOADS), help="which (default: W1, W2, W3)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0, or 1 when something could not be counted (what was until then is shown)."""
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found: dict[str, dict[str, SystemCalls]] = {}
    code = 0
    try:
        with stage(options.directory) as at:
            servers = contenders(at, options.previous, options.other)
            for name in options.workload or DEFAULT:
                for server in servers:
                    calls = count_system_calls(server, at, WORKLOADS[name], provider=chosen(options))
                    found.setdefault(name, {})[server.name] = calls
                    say(f"{name} {server.name}: {calls.total:.1f} system calls, {calls.failed:.1f} failed")
    except (TrialError, OSError, subprocess.SubprocessError, KeyboardInterrupt) as e:
        say(f"stopped: {str(e) or 'interrupted'}")
        code = 1
    for name, counted in found.items():
        about = f"{name} ({WORKLOADS[name].sentence}): system calls a message."
        print(f"{about}\n\n{kinds_table(counted)}\n", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
