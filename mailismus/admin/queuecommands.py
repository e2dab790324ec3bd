"""The commands about the queue: their words, and what they print. The command line and the shell both run them.

*Rules*: a command writes as it reads, message by message, so that no listing is ever held as a whole. Who stops in the
middle (an interrupt, a closed pipe) closes the question, and the server stops looking. What leads to an exit code is
raised as `StartError`.

*Not here*: where the queue is found (`commands`), or how a line is read (`shell`).
"""

from __future__ import annotations

import argparse
import enum
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TextIO, cast

import attrs

from mailismus.admin.content import harmless_lines, header_of, unstuff
from mailismus.admin.listing import EMPTY, NO_MATCH, TextListing, count_json, count_lines, json_lines
from mailismus.admin.showing import entry_lines, envelope_lines
from mailismus.admin.source import Source
from mailismus.errors import StartError
from mailismus.mail.ids import SpoolId, parse_queue_id, parse_spool_id
from mailismus.queue.filter import FORMS


class Reach(enum.Enum):
    """What a command can do its work on."""

    SERVER_OR_FILES = "server or files"
    SERVER = "server"


@attrs.frozen
class Command:
    """One command. `fill` adds its arguments to a parser; a list of FILTERs is called `filter` there."""

    name: str
    reach: Reach
    summary: str
    description: str
    examples: str
    fill: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Source, argparse.Namespace, TextIO], None]

    def describe(self, parser: argparse.ArgumentParser, program: str) -> None:
        """Give the parser the command's arguments and its help. `program`: what stands before the command."""
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.description = self.description
        parser.epilog = "examples:\n" + "\n".join(f"  {program}{line}" for line in self.examples.splitlines())
        self.fill(parser)


def _fill_filter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("filter", nargs="*", metavar="FILTER", help=f"{FORMS}; several are ANDed")


def _fill_list(parser: argparse.ArgumentParser) -> None:
    _fill_filter(parser)
    parser.add_argument("--json", action="store_true", help="JSON instead of text")
    parser.add_argument("--limit", type=_positive, metavar="N", help="at most N entries (default: all)")


def _fill_count(parser: argparse.ArgumentParser) -> None:
    _fill_filter(parser)
    parser.add_argument("--json", action="store_true", help="JSON instead of text")


def _fill_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", type=_id, metavar="ID", help="a spool id, 16 digits; with -N behind it for one recipient")
    parser.add_argument("--body", action="store_true", help="the whole message, and nothing else")


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15 or int(text) < 1:
        raise argparse.ArgumentTypeError("write a whole number from 1")
    return int(text)


def _id(text: str) -> str:
    if parse_spool_id(text) is None and parse_queue_id(text) is None:
        form = "write 16 upper-case hexadecimal digits as queue list shows them, with -N behind them for one recipient"
        raise argparse.ArgumentTypeError(form)
    return text


def _list(source: Source, arguments: argparse.Namespace, out: TextIO) -> None:
    with closing(source.messages(arguments.filter, arguments.limit)) as messages:
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


def _count(source: Source, arguments: argparse.Namespace, out: TextIO) -> None:
    summary = source.counts(arguments.filter)
    for line in [count_json(summary)] if arguments.json else count_lines(summary):
        out.write(line + "\n")


def _show(source: Source, arguments: argparse.Namespace, out: TextIO) -> None:
    if arguments.body:
        with closing(source.messages([arguments.id], 1)) as messages:
            if next(messages, None) is None:
                raise _no_such(arguments.id)
        with closing(source.contents(_spool_id_of(arguments.id))) as pieces:
            _write_content(pieces, out)
        return
    is_there = False
    with closing(source.messages([arguments.id], None)) as messages:
        for message in messages:
            for line in () if is_there else envelope_lines(message):
                out.write(line + "\n")
            is_there = True
            for entry in message.entries:
                for line in entry_lines(message, entry):
                    out.write(line + "\n")
    if not is_there:
        raise _no_such(arguments.id)
    with closing(source.contents(_spool_id_of(arguments.id))) as pieces:
        header, is_whole = header_of(unstuff(pieces))
    out.write("\n")
    for line in harmless_lines([header]):
        out.write(line + "\n")
    if not is_whole:
        out.write("(the header goes on: --body shows it all)\n")


def _write_content(pieces: Iterator[bytes], out: TextIO) -> None:
    """Byte for byte into a file or pipe; made harmless on a terminal."""
    if out.isatty():
        for line in harmless_lines(unstuff(pieces)):
            out.write(line + "\n")
    else:
        out.flush()
        for piece in unstuff(pieces):
            out.buffer.write(piece)
        out.buffer.flush()


def _spool_id_of(text: str) -> SpoolId:
    queue_id = parse_queue_id(text)
    return queue_id.spool_id if queue_id is not None else cast(SpoolId, parse_spool_id(text))


def _no_such(text: str) -> StartError:
    what = "no such recipient of a message is" if "-" in text else "no such message is"
    return StartError(os.EX_DATAERR, f"{text}: {what} in the queue; it was delivered or returned, or never came")


def _flush(source: Source, arguments: argparse.Namespace, out: TextIO) -> None:
    number = source.flush(arguments.filter)
    entries, are = ("entry", "is") if number == 1 else ("entries", "are")
    out.write(f"{number} deferred {entries} {are} due now\n")


COMMANDS = (
    Command(
        "list",
        Reach.SERVER_OR_FILES,
        "list entries",
        "Lists entries as mailq does, or as JSON with the names of postqueue -j, one object a line.",
        "list\nlist area=deferred domain=example.org older=4h\nlist --json --limit 10 'sender=<>'",
        _fill_list,
        _list,
    ),
    Command(
        "count",
        Reach.SERVER_OR_FILES,
        "count entries",
        "Counts entries, messages and bytes of each area.",
        "count\ncount --json reply=timeout",
        _fill_count,
        _count,
    ),
    Command(
        "show",
        Reach.SERVER_OR_FILES,
        "show one message",
        "Shows a message: its envelope, the recipients still to be served with their attempts, next attempt and last\n"
        "reply, and its header. With --body the message alone, as a next hop gets it: byte for byte into a file or pipe\n"
        "(line ends are CRLF), with control characters escaped on a terminal.",
        "show 000000010000002A\nshow 000000010000002A-2\nshow 000000010000002A --body",
        _fill_show,
        _show,
    ),
    Command(
        "flush",
        Reach.SERVER,
        "try deferred entries now",
        "Makes deferred entries due now, whatever their next attempt was, and says how many. It needs the running server.",
        "flush\nflush domain=example.org\nflush 000000010000002A-2",
        _fill_filter,
        _flush,
    ),
)
"""In the order of the help."""
