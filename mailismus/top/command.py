"""The command `mailismus top`.

*Not here*: the screen (`run`), which is imported when it is asked for: no other command needs its library.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import NoReturn

import attrs

from mailismus.admin.client.server import need_server
from mailismus.config.values.settings import Settings
from mailismus.errors import StartError
from mailismus.top import wording
from mailismus.top.plot import ASCII_BLOCKS, BLOCKS

LEAST_INTERVAL_S, MOST_INTERVAL_S = 0.2, 60.0
_DUMB = frozenset({"", "dumb", "unknown"})


@attrs.frozen
class TopTools:
    """The rest of the program, as far as the command needs it."""

    load: Callable[[argparse.Namespace], Settings]
    """The settings that the arguments name. Raises `ConfigError`."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser], tools: TopTools) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "top",
        help="a live screen of the running server",
        description=wording.TOP,
        epilog=wording.TOP_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--interval", type=_interval, default=1.0, metavar="SECONDS", help="the time between two looks (default: 1)"
    )
    parser.set_defaults(run=lambda arguments: _run(arguments, tools))


def _run(arguments: argparse.Namespace, tools: TopTools) -> int:
    check_terminal()
    show(tools.load(arguments).admin.socket_path, arguments.interval)
    return os.EX_OK


def check_terminal() -> None:
    """Raise `StartError` (64) where there is no terminal to draw on."""
    if sys.stdin is None or sys.stdout is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        text = "top needs a terminal; for programs there are `mailismus queue count --json` and the metrics"
        raise StartError(os.EX_USAGE, text)
    if os.environ.get("TERM", "") in _DUMB:
        raise StartError(os.EX_USAGE, "top needs a terminal that can place the cursor: set TERM to its kind")


def show(socket_path: str, interval_s: float) -> None:
    """Show the server at this socket until the user leaves. Raises `StartError`: 69 when it does not run."""
    need_server(socket_path, _count_nothing).close()
    from mailismus.top.run import LiveScreen

    blocks = BLOCKS if "utf" in (sys.stdout.encoding or "").lower() else ASCII_BLOCKS
    LiveScreen(lambda: need_server(socket_path, _count_nothing), interval_s, blocks).run()


def _count_nothing(provider: str) -> NoReturn:
    raise AssertionError("nothing is counted")


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not LEAST_INTERVAL_S <= seconds <= MOST_INTERVAL_S:
        raise argparse.ArgumentTypeError(f"write seconds from {LEAST_INTERVAL_S:g} to {MOST_INTERVAL_S:g}")
    return seconds
