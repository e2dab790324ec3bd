"""The commands `mailismus queue list|count|shape|show|flush`, `mailismus shell` and `mailismus dump FILE`.

*Rules*: the running server is asked where there is one; else the files are read, and nothing of them is changed. What
leads to an exit code is raised as `StartError`. A reader that has seen enough (a closed pipe) is no error.

*Not here*: the command line as a whole, and what opens files: both are brought in as `CommandTools`. What the queue
commands print: `admin.commands.queue`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

import attrs

from mailismus.admin.client.source import IPlanCounter, IStoppedQueue, OfflineSource, QueueSource, need_server, open_server
from mailismus.admin.commands import wording
from mailismus.admin.commands.queue import COMMANDS, Command, Reach, obey
from mailismus.admin.commands.shell import Shell, run_shell
from mailismus.config.values.settings import Settings
from mailismus.errors import StartError
from mailismus.queue.filter import FilterError, parse_filter


@attrs.frozen
class CommandTools:
    """What the commands need of the rest of the program."""

    load: Callable[[argparse.Namespace], Settings]
    """The settings that the arguments name. Raises `ConfigError`."""

    open_offline: Callable[[str, str], IStoppedQueue]
    """Queue path and spool path -> the queue there, to be read. Raises `FileNotFoundError` when there is none there,
    `StartError`, `StorageError` or `OSError`."""

    new_counter: Callable[[], IPlanCounter]
    """What counts a queue by a plan of the running server."""

    dump: Callable[[str, TextIO], None]
    """Prints a file of ours readably. Raises `Corrupt` or `OSError`."""

    complain: Callable[[str], None]
    """Says in one line on stderr what went wrong, where the program goes on."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser], tools: CommandTools) -> None:
    """Add the commands to the command line."""
    queue = commands.add_parser(
        "queue",
        help="look at the queue, and try deferred mail now",
        description=wording.QUEUE,
        epilog=wording.FILTERS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = queue.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        _register(verbs.add_parser(command.name, help=command.summary), command, tools)
    shell = commands.add_parser(
        "shell",
        help="an interactive shell on the running server",
        description=wording.SHELL,
        epilog=wording.SHELL_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shell.set_defaults(run=lambda arguments: _shell(arguments, tools))
    dump = commands.add_parser(
        "dump",
        help="print a file of the queue readably",
        description=wording.DUMP,
        epilog=wording.DUMP_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    dump.add_argument("file", metavar="FILE", help="a .mqj, .mqc or .msg file, or one of corrupt/")
    dump.set_defaults(run=lambda arguments: _dump(arguments, tools))


def _register(parser: argparse.ArgumentParser, command: Command, tools: CommandTools) -> None:
    command.describe(parser, "mailismus queue ")
    if command.reach is Reach.SERVER_OR_FILES:
        parser.add_argument("--queue", metavar="DIR", help="a queue directory, without a configuration; with --spool")
        parser.add_argument("--spool", metavar="DIR", help="the spool directory that belongs to it")
    parser.set_defaults(run=lambda arguments: _run(command, arguments, tools))


def _run(command: Command, arguments: argparse.Namespace, tools: CommandTools) -> int:
    now = time.time()
    try:
        parse_filter(getattr(arguments, "filter", []), now)
    except FilterError as error:
        raise StartError(os.EX_USAGE, str(error)) from None
    out = _output()
    if command.reach is Reach.SERVER:
        source: QueueSource = need_server(tools.load(arguments).admin.socket_path, tools.new_counter)
    else:
        source = _open(arguments, tools, now)
    obey(command, source, arguments, out)
    return os.EX_OK


def _shell(arguments: argparse.Namespace, tools: CommandTools) -> int:
    socket_path = tools.load(arguments).admin.socket_path
    need_server(socket_path, tools.new_counter).close()
    shell = Shell(lambda: need_server(socket_path, tools.new_counter), time.time, _output(), tools.complain)
    return run_shell(shell, sys.stdin)


def _dump(arguments: argparse.Namespace, tools: CommandTools) -> int:
    out = _output()
    tools.dump(arguments.file, out)
    out.flush()
    return os.EX_OK


def _open(arguments: argparse.Namespace, tools: CommandTools, now: float) -> QueueSource:
    """The queue that is meant. Raises `StartError` or `ConfigError`."""
    queue_path, spool_path = arguments.queue, arguments.spool
    if (queue_path is None) != (spool_path is None):
        raise StartError(os.EX_USAGE, "write both --queue DIR and --spool DIR, or neither")
    if queue_path is None:
        settings = tools.load(arguments)
        running = open_server(settings.admin.socket_path, tools.new_counter)
        if running is not None:
            return running
        queue_path, spool_path = settings.queue.rootpath, settings.queue.spool.rootpath
    return OfflineSource(_open_files(tools, queue_path, spool_path), now)


def _open_files(tools: CommandTools, queue_path: str, spool_path: str) -> IStoppedQueue:
    try:
        for path in (queue_path, spool_path):
            if not _is_directory(path):
                raise StartError(os.EX_CONFIG, f"there is no queue: {path} is no directory")
        return tools.open_offline(queue_path, spool_path)
    except (FileNotFoundError, NotADirectoryError) as error:
        missing = error.filename if isinstance(error.filename, str) else queue_path
        raise StartError(os.EX_CONFIG, f"there is no queue: {missing} does not exist") from None


def _is_directory(path: str) -> bool:
    """Raises `OSError` where that can't be told."""
    os.stat(path)
    return os.path.isdir(path)


def _output() -> TextIO:
    """stdout, which never fails for a character that its encoding does not have."""
    out = sys.stdout
    reconfigure = getattr(out, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return out
