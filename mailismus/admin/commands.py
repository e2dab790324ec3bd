"""The commands `mailismus queue list|count` and `mailismus dump FILE`.

*Rules*: the running server is asked where there is one; else the files are read, and nothing of them is changed. What
leads to an exit code is raised as `StartError`. A reader that has seen enough (a closed pipe) is no error.

*Not here*: the command line as a whole, and what opens files: both are brought in as `CommandTools`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

import attrs

from mailismus.admin.listing import EMPTY, NO_MATCH, TextListing, count_json, count_lines, json_lines
from mailismus.admin.source import OfflineQueue, OfflineSource, Source, open_server
from mailismus.config.settings import Settings
from mailismus.errors import StartError
from mailismus.queue.filter import FORMS, FilterError, parse_filter


@attrs.frozen
class CommandTools:
    """What the commands need of the rest of the program."""

    load: Callable[[argparse.Namespace], Settings]
    """The settings that the arguments name. Raises `ConfigError`."""

    open_offline: Callable[[str, str], OfflineQueue]
    """Queue path and spool path -> the queue there, to be read. Raises `FileNotFoundError` when there is none there,
    `StartError`, `StorageError` or `OSError`."""

    dump: Callable[[str, TextIO], None]
    """Prints a file of ours readably. Raises `Corrupt` or `OSError`."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser], tools: CommandTools) -> None:
    """Add the commands to the command line."""
    queue = commands.add_parser(
        "queue", help="look at the queue", description="Looks at the queue, in the running server or in its files."
    )
    verbs = queue.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = verbs.add_parser(
        "list", help="list entries", description="Lists entries as mailq does, or as JSON with the names of postqueue -j."
    )
    _add_choice(listing)
    listing.add_argument("--limit", type=_positive, metavar="N", help="at most N entries (default: all)")
    listing.set_defaults(run=lambda arguments: _list(arguments, tools))
    count = verbs.add_parser("count", help="count entries", description="Counts entries, messages and bytes of each area.")
    _add_choice(count)
    count.set_defaults(run=lambda arguments: _count(arguments, tools))
    dump = commands.add_parser(
        "dump", help="print a file of the queue readably", description="Prints a file of the queue readably."
    )
    dump.add_argument("file", metavar="FILE")
    dump.set_defaults(run=lambda arguments: _dump(arguments, tools))


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("filter", nargs="*", metavar="FILTER", help=f"{FORMS}; several are ANDed")
    parser.add_argument("--json", action="store_true", help="JSON instead of text")
    parser.add_argument("--queue", metavar="DIR", help="a queue directory, without a configuration; with --spool")
    parser.add_argument("--spool", metavar="DIR", help="the spool directory that belongs to it")


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15 or int(text) < 1:
        raise argparse.ArgumentTypeError("write a whole number from 1")
    return int(text)


def _list(arguments: argparse.Namespace, tools: CommandTools) -> int:
    out = _output()
    source = _open(arguments, tools)
    try:
        messages = source.messages(arguments.filter, arguments.limit)
        if arguments.json:
            for message in messages:
                for line in json_lines(message):
                    out.write(line + "\n")
        else:
            listing = TextListing()
            for message in messages:
                for line in listing.lines_of(message):
                    out.write(line + "\n")
            out.write(listing.last_line(when_empty=NO_MATCH if arguments.filter else EMPTY) + "\n")
        out.flush()
    finally:
        source.close()
    return os.EX_OK


def _count(arguments: argparse.Namespace, tools: CommandTools) -> int:
    out = _output()
    source = _open(arguments, tools)
    try:
        summary = source.counts(arguments.filter)
    finally:
        source.close()
    for line in [count_json(summary)] if arguments.json else count_lines(summary):
        out.write(line + "\n")
    out.flush()
    return os.EX_OK


def _dump(arguments: argparse.Namespace, tools: CommandTools) -> int:
    out = _output()
    tools.dump(arguments.file, out)
    out.flush()
    return os.EX_OK


def _open(arguments: argparse.Namespace, tools: CommandTools) -> Source:
    """The queue that is meant, its filters checked. Raises `StartError` or `ConfigError`."""
    now = time.time()
    try:
        parse_filter(arguments.filter, now)
    except FilterError as error:
        raise StartError(os.EX_USAGE, str(error)) from None
    queue_path, spool_path = arguments.queue, arguments.spool
    if (queue_path is None) != (spool_path is None):
        raise StartError(os.EX_USAGE, "write both --queue DIR and --spool DIR, or neither")
    if queue_path is None:
        settings = tools.load(arguments)
        running = open_server(settings.admin.socket_path)
        if running is not None:
            return running
        queue_path, spool_path = settings.queue.rootpath, settings.queue.spool.rootpath
    return OfflineSource(_open_files(tools, queue_path, spool_path), now)


def _open_files(tools: CommandTools, queue_path: str, spool_path: str) -> OfflineQueue:
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
