"""The command `mailismus plan`.

*Rules*: the queue is read as `queue list` reads it, from the running server or from the files of a stopped queue, and then
left alone. Then the server is asked what it knows of receivers, so that both are of one moment. The simulation runs in this
process. Progress is shown where standard error is a terminal, and nowhere else.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import NoReturn, TextIO

import attrs
from twisted.logger import ILogObserver, LogEvent, globalLogBeginner
from zope.interface import implementer

from mailismus.admin.client.server import ServerSource, open_server
from mailismus.admin.client.source import QueueSource
from mailismus.admin.client.stopped import OfflineSource
from mailismus.admin.commands.command import argument_type, fill_filter, positive
from mailismus.admin.commands.directories import FoundQueue, add_options, check_options, find_configured, find_named
from mailismus.admin.commands.register import open_files
from mailismus.admin.model.left_out import left_out
from mailismus.config.values.settings import Settings
from mailismus.config.values.units import parse_time_ms, show_time_ms
from mailismus.errors import StartError
from mailismus.observe.habits import Habits
from mailismus.plan import wording
from mailismus.plan.forecast import Forecast
from mailismus.plan.snapshot import MAX_ENTRIES, Snapshot, read_snapshot
from mailismus.queue.filter import FilterError, parse_filter
from mailismus.queue.interface import Entry, Message, Predicate
from mailismus.queue.provider import IProviders

UNTIL_MS = 4 * 3_600_000
CPU_MS = 60_000
MOST_UNTIL_MS = 30 * 86_400_000
SHOWN_S = 0.2
"""Between two lines of progress."""


@attrs.frozen
class PlanTools:
    """The rest of the program, as far as the command needs it."""

    load: Callable[[argparse.Namespace], Settings]
    """The settings that the arguments name. Raises `ConfigError`."""

    load_changed: Callable[[argparse.Namespace, Sequence[tuple[str, str]]], Settings]
    """The same, with other values at some paths. Raises `ConfigError`, and `StartError` (64) for what is no path."""

    load_or_default: Callable[[argparse.Namespace], Settings]
    """The settings that the arguments name, the defaults if there is no configuration. Raises `ConfigError`."""

    providers: IProviders
    """The queue providers of the program."""

    dead_hosts: Callable[[str, float], Sequence[bytes]]
    """Records of the hosts that were dead when the queue in this directory was stopped, by UTC seconds."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser], tools: PlanTools) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "plan",
        help="a forecast: when mail will be delivered",
        description=wording.PLAN,
        epilog=wording.PLAN_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    fill_filter(parser)
    parser.add_argument(
        "--until", type=_time, default=UNTIL_MS, metavar="TIME", help="how far ahead (default: 4h; at most 30d)"
    )
    parser.add_argument("--without", metavar="HOST", help="as if this host (name, address or domain) did not answer")
    parser.add_argument(
        *("--set",),
        dest="changes",
        action="append",
        default=[],
        type=_change,
        metavar="PATH=VALUE",
        help="compare with another value of a setting, by its path as config set has it; may be repeated",
    )
    parser.add_argument("--seed", type=positive, default=1, metavar="N", help="of all that is drawn (default: 1)")
    parser.add_argument(
        "--cpu", type=_time, default=CPU_MS, metavar="TIME", help="processor time for each simulation (default: 1m)"
    )
    parser.add_argument(
        *("--limit",),
        type=positive,
        default=MAX_ENTRIES,
        metavar="N",
        help=f"simulate at most N entries, those that are due first (default: {MAX_ENTRIES:,})",
    )
    parser.add_argument("--json", action="store_true", help="JSON instead of text, one object")
    add_options(parser)
    parser.set_defaults(run=lambda arguments: _run(arguments, tools))


@argument_type
def _time(text: str) -> int:
    milliseconds = parse_time_ms(text)
    if not 0 < milliseconds <= MOST_UNTIL_MS:
        raise ValueError("write a time from 1ms to 30d")
    return milliseconds


@argument_type
def _change(text: str) -> tuple[str, str]:
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise ValueError("write PATH=VALUE, as mta/deliver/maxserverconnections=5")
    return path, value


def _run(arguments: argparse.Namespace, tools: PlanTools) -> int:
    now = time.time()
    is_wanted = _wanted(arguments.filter, now)
    check_options(arguments)
    named = arguments.queue is not None
    settings = tools.load_or_default(arguments) if named else tools.load(arguments)
    changed = tools.load_changed(arguments, arguments.changes) if arguments.changes else settings
    progress = _Progress(sys.stderr)
    source, dead = _open(arguments, settings, tools, now)
    try:
        reading = source.entries() if isinstance(source, ServerSource) else source.messages((), None)
        with closing(reading) as messages:
            snapshot = read_snapshot(messages, time.time, arguments.limit, is_wanted, progress.read)
        habits = source.habits() if isinstance(source, ServerSource) else Habits(dead=dead)
        gaps = source.gaps
    finally:
        source.close()
    before, after = _simulate(snapshot, habits, settings, changed, arguments, progress)
    _print(before, after, arguments)
    if gaps:
        raise StartError(os.EX_IOERR, left_out(gaps))
    return os.EX_OK


def _wanted(words: Sequence[str], now: float) -> Predicate | None:
    """Whether an entry is asked about; None: each is. Raises `StartError` (64)."""
    if not words:
        return None
    try:
        wanted = parse_filter(words, now)
    except FilterError as error:
        raise StartError(os.EX_USAGE, str(error)) from None

    def is_wanted(message: Message, entry: Entry) -> bool:
        return (
            wanted.spool_id in (None, message.spool_id)
            and wanted.area in (None, entry.area)
            and wanted.matches(message, entry)
        )

    return is_wanted


def _open(
    arguments: argparse.Namespace, settings: Settings, tools: PlanTools, now: float
) -> tuple[QueueSource, tuple[bytes, ...]]:
    """The queue that is meant, and of a stopped one records of dead hosts. Raises `StartError`."""
    if arguments.queue is None:
        running = open_server(settings.admin.socket_path, _count_nothing)
        if running is not None:
            return running, ()
        found: FoundQueue = find_configured(settings.queue, tools.providers)
    else:
        found = find_named(arguments, tools.providers)
    return OfflineSource(open_files(found), now), tuple(tools.dead_hosts(found.place.queue_path, now))


def _simulate(
    snapshot: Snapshot,
    habits: Habits,
    settings: Settings,
    changed: Settings,
    arguments: argparse.Namespace,
    progress: _Progress,
) -> tuple[Forecast, Forecast | None]:
    """The forecast, and with a change the other one. Raises `StartError`."""
    from mailismus.plan.simulate import PlanOrder, UnknownHost, simulate  # here: other commands do not need the deliverer

    _silence_log()
    until_s, cpu_s = arguments.until / 1000, arguments.cpu / 1000
    order = PlanOrder(until_s, cpu_s, arguments.seed)
    try:
        before = simulate(snapshot, habits, settings, order, progress.simulated(until_s))
        after = None
        if arguments.without or arguments.changes:
            other = attrs.evolve(order, without=arguments.without or "")
            after = simulate(snapshot, habits, changed, other, progress.simulated(until_s))
    except UnknownHost as error:
        text = f"no waiting mail is for a host {error}: write its name, its address or the domain of the mail"
        raise StartError(os.EX_DATAERR, text) from None
    finally:
        progress.clear()
    return before, after


def _print(before: Forecast, after: Forecast | None, arguments: argparse.Namespace) -> None:
    from mailismus.plan.render import compared_lines, forecast_lines, json_line  # here: as above

    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    changes = [f"{path}={value}" for path, value in arguments.changes]
    if arguments.without:
        changes.append(f"no answer of {arguments.without}")
    change = ", ".join(changes)
    if arguments.json:
        print(json_line(before, after, change))
        return
    for line in forecast_lines(before):
        print(line)
    if after is not None:
        print()
        for line in compared_lines(before, after, change):
            print(line)


def _silence_log() -> None:
    """Drop what the delivery task logs: it speaks of no real delivery."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # another command of this process may have begun the log
        globalLogBeginner.beginLoggingTo([_Drop()], redirectStandardIO=False, discardBuffer=True)


@implementer(ILogObserver)
class _Drop:
    """Observes nothing."""

    def __call__(self, event: LogEvent) -> None:
        """Nothing."""


class _Progress:
    """A line at a terminal that is written again and again."""

    def __init__(self, out: TextIO | None) -> None:
        self._out = out if out is not None and out.isatty() else None
        self._shown_at = 0.0

    def read(self, entries: int) -> None:
        """Show how many entries were read."""
        self._show(f"reading the queue: {entries:,} entries")

    def simulated(self, until_s: float) -> Callable[[float], None]:
        """What shows how far a simulation is."""
        whole = show_time_ms(round(until_s * 1000))
        return lambda seconds: self._show(f"forecast: {show_time_ms(int(seconds) * 1000)} of {whole}")

    def clear(self) -> None:
        """Remove the line."""
        if self._out is not None and self._shown_at:
            self._out.write("\r\x1b[K")
            self._out.flush()

    def _show(self, text: str) -> None:
        now = time.monotonic()
        if self._out is not None and now - self._shown_at >= SHOWN_S:
            self._shown_at = now
            self._out.write(f"\r\x1b[K{text}")
            self._out.flush()


def _count_nothing(provider: str) -> NoReturn:
    raise AssertionError("nothing is counted")
