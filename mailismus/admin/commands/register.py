"""The commands `mailismus queue list|count|...|servers|convert|setup`, `mailismus why`, `shell` and `dump FILE`.

*Rules*: a command asks the running server where there is one; else it reads the files and changes nothing. An error that
ends the command is raised as `StartError` with the exit code. A reader that has seen enough (a closed pipe) is no error.

*Not here*: the command line as a whole, and what opens files: both are brought in as `CommandTools`. What the queue
commands print: `admin.commands.queue`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

import attrs

from mailismus.admin.client.server import NewCounter, need_server, open_server
from mailismus.admin.client.source import QueueSource
from mailismus.admin.client.stopped import OfflineSource, StoppedAnswers
from mailismus.admin.commands import convert, setup, upkeep_wording, wording
from mailismus.admin.commands.command import Command, Reach
from mailismus.admin.commands.directories import (
    FoundQueue,
    add_options,
    add_refused_options,
    check_options,
    find_configured,
    find_named,
    refuse_options,
)
from mailismus.admin.commands.queue import COMMANDS, WHY, obey
from mailismus.config.values.settings import Settings
from mailismus.errors import StartError
from mailismus.mail.ids import parse_spool_id
from mailismus.queue.filter import FilterError, parse_filter
from mailismus.queue.interface import Area
from mailismus.queue.provider import IProviders, IStoppedQueue
from mailismus.queue.waiting import Explanations

_AREAS = frozenset(area.value for area in Area)


@attrs.frozen
class CommandTools:
    """The rest of the program, as far as the commands need it."""

    load: Callable[[argparse.Namespace], Settings]
    """The settings that the arguments name. Raises `ConfigError`."""

    load_with_secrets: Callable[[argparse.Namespace], Settings]
    """The same, for a command that uses secrets."""

    find_foreign: Callable[[str], Sequence[str]]
    """Paths of the settings that the loaded file says, and that the queue provider of this name does not have."""

    providers: IProviders
    """The queue providers of the program."""

    dump: Callable[[str, TextIO], None]
    """Prints a file of ours readably. Raises `StartError`, `StorageError` or `OSError`."""

    explain_stopped: Callable[[str, float], Explanations]
    """Explains entries of a stopped queue, by its directory and UTC seconds. Raises nothing."""

    act_on_stopped: Callable[[Settings], StoppedAnswers]
    """Answers requests about acts over the stopped queue of these settings."""

    complain: Callable[[str], None]
    """Writes one line about an error to stderr; the program goes on."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser], tools: CommandTools) -> None:
    """Add the commands to the command line."""
    queue = commands.add_parser(
        "queue",
        help="look at the queue, and try deferred mail now",
        description=wording.QUEUE,
        epilog=wording.FILTERS + wording.QUEUE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = queue.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        _register(verbs.add_parser(command.name, help=command.summary), command, tools, "mailismus queue ")
    conversion = verbs.add_parser(
        "convert",
        help="move a stopped queue to another provider",
        description=upkeep_wording.CONVERT,
        epilog=upkeep_wording.CONVERT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    convert.fill(conversion)
    conversion.set_defaults(run=lambda arguments: _convert(arguments, tools))
    setting_up = verbs.add_parser(
        "setup",
        help="make what a shared queue needs in its services, once",
        description=upkeep_wording.SETUP,
        epilog=upkeep_wording.SETUP_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    setting_up.set_defaults(run=lambda arguments: _set_up(arguments, tools))
    _register(commands.add_parser(WHY.name, help=WHY.summary), WHY, tools, "mailismus ")
    shell = commands.add_parser(
        "shell",
        help="an interactive shell on the running server",
        description=wording.SHELL,
        epilog=wording.SHELL_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_refused_options(shell)
    shell.set_defaults(run=lambda arguments: _shell(arguments, tools))
    dump = commands.add_parser(
        "dump",
        help="print a file of the queue readably",
        description=wording.DUMP,
        epilog=wording.DUMP_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    dump.add_argument("file", metavar="FILE", help="a .mqj, .mqc or .msg file, positions, provider, lock, or of corrupt/")
    dump.set_defaults(run=lambda arguments: _dump(arguments, tools))


def _register(parser: argparse.ArgumentParser, command: Command, tools: CommandTools, program: str) -> None:
    command.describe(parser, program)
    if command.reach is Reach.SERVER_OR_FILES:
        add_options(parser)
    else:
        add_refused_options(parser)
    parser.set_defaults(run=lambda arguments: _run(command, arguments, tools))


def _run(command: Command, arguments: argparse.Namespace, tools: CommandTools) -> int:
    now = time.time()
    try:
        parse_filter(getattr(arguments, "filter", []), now)
    except FilterError as error:
        raise StartError(os.EX_USAGE, str(error)) from None
    out = _output()
    new_counter = _counters_of(tools.providers)
    if command.reach is Reach.SERVER:
        refuse_options(arguments, f"queue {command.name}")
        source: QueueSource = need_server(tools.load(arguments).admin.socket_path, new_counter)
    elif command.reach is Reach.SERVER_OR_LOCK:
        refuse_options(arguments, f"queue {command.name}")
        source = _open_to_act(arguments, tools, now)
    else:
        source = _open(arguments, tools, now)
    obey(command, source, arguments, out)
    return os.EX_OK


def _convert(arguments: argparse.Namespace, tools: CommandTools) -> int:
    out = _output()
    status = convert.run(arguments, tools.load(arguments).queue, tools.providers, tools.find_foreign, out)
    out.flush()
    return status


def _set_up(arguments: argparse.Namespace, tools: CommandTools) -> int:
    out = _output()
    setup.run(tools.load_with_secrets(arguments).queue, tools.providers, out)
    out.flush()
    return os.EX_OK


def _shell(arguments: argparse.Namespace, tools: CommandTools) -> int:
    from mailismus.admin.commands.shell import Shell, run_shell  # here: other commands do not need it

    refuse_options(arguments, "shell")
    socket_path = tools.load(arguments).admin.socket_path
    new_counter = _counters_of(tools.providers)
    need_server(socket_path, new_counter).close()
    shell = Shell(lambda: need_server(socket_path, new_counter), time.time, _output(), tools.complain)
    return run_shell(shell, sys.stdin)


def _dump(arguments: argparse.Namespace, tools: CommandTools) -> int:
    out = _output()
    found = _find_stored(arguments, tools)
    if found is None:
        tools.dump(arguments.file, out)
    else:
        found.provider.dump_stored(found.place, arguments.file, out)
    out.flush()
    return os.EX_OK


def _find_stored(arguments: argparse.Namespace, tools: CommandTools) -> FoundQueue | None:
    """The configured queue, if it lies in services, and this is no file but may be a name there. Raises `StartError`,
    `ConfigError`."""
    name = arguments.file
    if os.path.lexists(name) or not (parse_spool_id(name) or name.partition("/")[0] in _AREAS):
        return None
    found = find_configured(tools.load(arguments).queue, tools.providers)
    return None if found.provider.is_in_files else found


def _open(arguments: argparse.Namespace, tools: CommandTools, now: float) -> QueueSource:
    """The queue that is meant. Raises `StartError` or `ConfigError`."""
    check_options(arguments)
    if arguments.queue is not None:
        return _open_offline(find_named(arguments, tools.providers), tools, now)
    settings = tools.load(arguments)
    running = open_server(settings.admin.socket_path, _counters_of(tools.providers))
    if running is not None:
        return running
    return _open_offline(find_configured(settings.queue, tools.providers), tools, now)


def _open_to_act(arguments: argparse.Namespace, tools: CommandTools, now: float) -> QueueSource:
    """The running server, or the stopped queue under its lock. Raises `StartError` or `ConfigError`."""
    settings = tools.load(arguments)
    running = open_server(settings.admin.socket_path, _counters_of(tools.providers))
    if running is not None:
        return running
    stopped = _open_offline(find_configured(settings.queue, tools.providers), tools, now)
    return attrs.evolve(stopped, answers=tools.act_on_stopped(settings))


def _open_offline(found: FoundQueue, tools: CommandTools, now: float) -> OfflineSource:
    return OfflineSource(open_files(found), now, lambda: tools.explain_stopped(found.place.queue_path, now))


def open_files(found: FoundQueue) -> IStoppedQueue:
    """The files of a stopped queue, to read. Raises `StartError`, `StorageError`."""
    try:
        return found.provider.open_stopped(found.place)
    except (FileNotFoundError, NotADirectoryError) as error:
        missing = error.filename if isinstance(error.filename, str) else found.place.queue_path
        raise StartError(os.EX_CONFIG, f"there is no queue: {missing} does not exist") from None


def _counters_of(providers: IProviders) -> NewCounter:
    return lambda name: providers.named(name).new_counter()


def _output() -> TextIO:
    """stdout, which never fails for a character that its encoding does not have."""
    out = sys.stdout
    reconfigure = getattr(out, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return out
