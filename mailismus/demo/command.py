"""The command `mailismus demo`: has a playground kept, says what to try, and shows the live screen.

*Rules*: the playground is another process (`keeper`), which ends when this one does, whatever ends it: this one holds the
other end of a pipe.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from mailismus.demo import wording
from mailismus.demo.playground import CONFIG_FILE, LOG_FILE, SOCKET_FILE
from mailismus.errors import StartError
from mailismus.top.command import check_terminal, show

END_S = 30.0
INTERVAL_S = 1.0
_RATES = (0.1, 200.0)


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "demo",
        help="a playground on loopback: a server, mail hosts of all kinds, mail",
        description=wording.DEMO,
        epilog=wording.DEMO_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rate", type=_rate, default=2.0, metavar="N", help="messages a second (default: 2)")
    parser.add_argument(
        "--for", type=_seconds, dest="lasts_s", metavar="SECONDS", help="the end after so long, without the live screen"
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    try:
        with _ended_by_signals(), _playground(arguments.rate) as (keeper, directory, page):
            config, log = (os.path.join(directory, name) for name in (CONFIG_FILE, LOG_FILE))
            print(wording.invitation(_program(), config, log, page), flush=True)
            if arguments.lasts_s is None and _has_terminal():
                _look_at(os.path.join(directory, SOCKET_FILE))
            else:
                _wait_for(keeper, arguments.lasts_s)
    except KeyboardInterrupt:
        pass
    with contextlib.suppress(OSError):  # the terminal may have gone
        print(wording.GONE, flush=True)
    return os.EX_OK


def _program() -> list[str]:
    """How this command line is called, from any directory."""
    called = os.path.abspath(sys.argv[0])
    if os.path.basename(called) != "mailismus" or not os.access(called, os.X_OK):
        return [sys.executable, "-m", "mailismus"]
    return ["mailismus"] if shutil.which("mailismus") == called else [called]


def _wait_for(keeper: subprocess.Popen[bytes], seconds: float | None) -> None:
    """Wait for so long; None: for a signal. Raises `StartError` if the playground ends meanwhile."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        status = keeper.wait(seconds)
        raise StartError(os.EX_UNAVAILABLE, f"the playground has ended by itself (status {status})")


def _has_terminal() -> bool:
    try:
        check_terminal()
    except StartError:
        return False
    return True


def _look_at(socket_path: str) -> None:
    """Show the live screen as often as the user wants."""
    while True:
        try:
            answer = input(wording.ASK)
        except EOFError:
            return
        if answer.strip().lower().startswith("q"):
            return
        show(socket_path, INTERVAL_S)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end what is done, as SIGINT does."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _playground(rate: float) -> Iterator[tuple[subprocess.Popen[bytes], str, str]]:
    """The process, the directory and the web page of a playground, which are gone behind this. Raises `StartError`."""
    command = [sys.executable, "-m", "mailismus.demo.keeper", "--rate", str(rate)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as keeper:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        try:
            told = json.loads(keeper.stdout.readline() or '{"error": "the playground could not be made"}')
            if "error" in told:
                raise StartError(os.EX_UNAVAILABLE, str(told["error"]))
            yield keeper, str(told["directory"]), str(told["page"])
        finally:
            keeper.stdin.close()
            try:
                keeper.wait(END_S)
            except subprocess.TimeoutExpired:
                keeper.terminate()


def _rate(text: str) -> float:
    least, most = _RATES
    number = _number(text)
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"write messages a second, from {least:g} to {most:g}")
    return number


def _seconds(text: str) -> float:
    number = _number(text)
    if not 0 < number <= 86_400:
        raise argparse.ArgumentTypeError("write seconds, at most a day's")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0
