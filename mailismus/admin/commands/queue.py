"""The commands about the queue: their words and their output. The command line and the shell both run them.

*Rules*: a command prints while it reads, message by message, so that no listing is ever in memory as a whole. A command that
stops in the middle (an interrupt, a closed pipe) closes the request, and the server stops searching. An error that ends the
command is raised as `StartError` with the exit code. The modules that write
what one command alone prints are imported when it runs: the others start sooner.

*Not here*: finding the queue (`commands.register`), reading lines (`shell`).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, TextIO, cast

from mailismus.admin.client.source import QueueSource
from mailismus.admin.commands import wording
from mailismus.admin.commands.acts import ACT_COMMANDS
from mailismus.admin.commands.command import Command, Reach, argument_type, fill_filter, positive
from mailismus.admin.commands.new_file import write_file
from mailismus.admin.commands.progress import ticking
from mailismus.admin.model.left_out import left_out, status_of
from mailismus.admin.model.noted import Known
from mailismus.admin.model.shape import By, shape_json, shape_lines
from mailismus.admin.render.listing import (
    EMPTY,
    NO_MATCH,
    NOTHING_READ,
    TextListing,
    count_json,
    count_lines,
    json_lines,
)
from mailismus.admin.render.picture import MAX_ROWS, shape_svg
from mailismus.errors import StartError, StorageError
from mailismus.mail.ids import SpoolId, parse_queue_id, parse_spool_id, spool_name
from mailismus.observe.amounts import moment
from mailismus.queue.filter import parse_subject

if TYPE_CHECKING:
    from mailismus.admin.render.screen import ScreenListing

WHY_LIMIT = 100
"""Entries of an answer to `why`, unless more are asked for."""
_WIDTH = 80
"""Columns of a terminal of unknown width."""


def obey(command: Command, source: QueueSource, arguments: argparse.Namespace, out: TextIO) -> None:
    """Run a command to its end, and close the source. Raises `StartError` (74 or 75) after the output if a part of the queue
    was left out: an incomplete answer never looks complete."""
    try:
        command.run(source, arguments, out)
        out.flush()
    finally:
        source.close()
    if source.gaps:
        raise StartError(status_of(source.gaps), left_out(source.gaps))


def _fill_list(parser: argparse.ArgumentParser) -> None:
    fill_filter(parser)
    parser.add_argument("--json", action="store_true", help="JSON instead of text")
    parser.add_argument("--limit", type=positive, metavar="N", help="at most N entries (default: all)")


def _fill_count(parser: argparse.ArgumentParser) -> None:
    fill_filter(parser)
    parser.add_argument("--json", action="store_true", help="JSON instead of text")


def _fill_shape(parser: argparse.ArgumentParser) -> None:
    fill_filter(parser)
    names = [by.value for by in By]
    parser.add_argument(
        "--by",
        choices=names,
        default=By.DOMAIN.value,
        help="what a row is: the recipient's domain (default), the host that replied last, or the sender's domain",
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="at most N rows; the others in one (default: all)")
    parser.add_argument("--json", action="store_true", help="JSON instead of text, an object for each row")
    parser.add_argument("--svg", metavar="FILE", help=f"a picture into FILE as well, of at most {MAX_ROWS} rows")


def _fill_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", type=_id, metavar="ID", help="a spool id, 16 digits; with -N behind it for one recipient")
    parser.add_argument("--body", action="store_true", help="the whole message, and nothing else")


def _fill_why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", type=_subject, metavar="ID|ADDRESS|DOMAIN", help="whose entries: those of recipients")
    parser.add_argument("--json", action="store_true", help="JSON instead of text, an object for each entry")
    parser.add_argument(
        "--limit", type=positive, default=WHY_LIMIT, metavar="N", help=f"at most N entries (default: {WHY_LIMIT})"
    )


@argument_type
def _subject(text: str) -> str:
    parse_subject(text)
    return text


def _id(text: str) -> str:
    if parse_spool_id(text) is None and parse_queue_id(text) is None:
        form = "write 16 upper-case hexadecimal digits as queue list shows them, with -N behind them for one recipient"
        raise argparse.ArgumentTypeError(form)
    return text


def _list(source: QueueSource, arguments: argparse.Namespace, out: TextIO) -> None:
    with closing(source.messages(arguments.filter, arguments.limit)) as messages:
        if arguments.json:
            for message in messages:
                for line in json_lines(message):
                    out.write(line + "\n")
        else:
            listing = _screen_listing(out) if out.isatty() else TextListing()
            for message in messages:
                for line in listing.lines_of(message):
                    out.write(line + "\n")
            nothing = NO_MATCH if arguments.filter else EMPTY
            when_empty = NOTHING_READ if source.gaps else nothing
            for line in listing.last_lines(when_empty=when_empty, limit=arguments.limit):
                out.write(line + "\n")


def _screen_listing(out: TextIO) -> ScreenListing:
    from mailismus.admin.render.screen import ScreenListing

    return ScreenListing(_width_of(out))


def _width_of(out: TextIO) -> int:
    """Return the columns of the terminal."""
    try:
        return os.get_terminal_size(out.fileno()).columns or _WIDTH
    except OSError:
        return _WIDTH


def _count(source: QueueSource, arguments: argparse.Namespace, out: TextIO) -> None:
    with ticking(sys.stderr, "counting"):
        summary = source.counts(arguments.filter)
    for line in [count_json(summary)] if arguments.json else count_lines(summary):
        out.write(line + "\n")


def _shape(source: QueueSource, arguments: argparse.Namespace, out: TextIO) -> None:
    with ticking(sys.stderr, "counting"):
        shape = source.shape(arguments.filter, By(arguments.by)).first(arguments.limit)
    for line in shape_json(shape) if arguments.json else shape_lines(shape):
        out.write(line + "\n")
    if arguments.svg is not None:
        lack = "; some of the queue can't be read, and is left out" if source.gaps else ""
        now = moment(time.time(), None, "%Y-%m-%d %H:%M %Z")
        write_file(arguments.svg, shape_svg(shape, f"For whom the queue waits, by age ({now}{lack})").encode())


def _show(source: QueueSource, arguments: argparse.Namespace, out: TextIO) -> None:
    from mailismus.admin.render.content import harmless_lines
    from mailismus.admin.render.message import entry_lines, envelope_lines
    from mailismus.smtp.trace import read_received

    if arguments.body:
        _show_body(source, arguments, out)
        return
    with closing(source.messages([arguments.id], None)) as found:
        messages = list(found)  # of one envelope, which is bounded
    if not messages:
        raise _no_such(arguments.id, source)
    spool_id = messages[0].spool_id
    header, is_whole, trouble = _read_header(source, spool_id)
    came_in = read_received(header, spool_name(spool_id))
    is_one_recipient = parse_queue_id(arguments.id) is not None
    for line in envelope_lines(messages[0], came_in, is_one_recipient=is_one_recipient):
        out.write(line + "\n")
    for message in messages:
        for entry in message.entries:
            for line in entry_lines(message, entry):
                out.write(line + "\n")
    if trouble is not None:
        raise trouble
    out.write("\n")
    for line in harmless_lines([header]):
        out.write(line + "\n")
    if not is_whole:
        out.write("(the header goes on: --body shows it all)\n")


def _show_body(source: QueueSource, arguments: argparse.Namespace, out: TextIO) -> None:
    with closing(source.messages([arguments.id], 1)) as messages:
        if next(messages, None) is None:
            raise _no_such(arguments.id, source)
    with closing(source.contents(_spool_id_of(arguments.id))) as pieces:
        _write_content(pieces, out)


def _read_header(source: QueueSource, spool_id: SpoolId) -> tuple[bytes, bool, StartError | StorageError | None]:
    """Return the header, whether that is all of it, and why it can't be read."""
    from mailismus.admin.render.content import header_of, unstuff

    try:
        with closing(source.contents(spool_id)) as pieces:
            return *header_of(unstuff(pieces)), None
    except (StartError, StorageError) as error:
        return b"", False, error


def _write_content(pieces: Iterator[bytes], out: TextIO) -> None:
    """Write unchanged into a file or pipe; escape for a terminal."""
    from mailismus.admin.render.content import harmless_lines, unstuff

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


def _no_such(text: str, source: QueueSource) -> StartError:
    if source.gaps:
        return StartError(status_of(source.gaps), f"{text}: not found; {left_out(source.gaps)}")
    what = "no such recipient of a message is" if "-" in text else "no such message is"
    return StartError(os.EX_DATAERR, f"{text}: {what} in the queue; it was delivered or returned, or never came")


def _why(source: QueueSource, arguments: argparse.Namespace, out: TextIO) -> None:
    from mailismus.admin.render.why import known_json, known_lines, why_json, why_lines

    known: Known | None = None
    count = 0
    subject = parse_subject(arguments.what)
    with closing(source.explained(arguments.what, arguments.limit)) as explained:
        for found in explained:
            if isinstance(found, Known):
                known = found
                continue
            count += len(found.entries)
            for line in why_json(found) if arguments.json else why_lines(found, with_attempts=not subject.is_domain):
                out.write(line + "\n")
    if count >= arguments.limit and not arguments.json:
        out.write(f"(the limit of {arguments.limit} is reached: there may be more; --limit N)\n")
    if count:
        return
    if not subject.domain:
        raise _no_such(arguments.what, source)
    for line in [known_json(arguments.what, known)] if arguments.json else known_lines(arguments.what, known):
        out.write(line + "\n")


def _flush(source: QueueSource, arguments: argparse.Namespace, out: TextIO) -> None:
    number = source.flush(arguments.filter)
    entries, are = ("entry", "is") if number == 1 else ("entries", "are")
    none = ": no deferred entry matches" if number == 0 and arguments.filter else ""
    out.write(f"{number} deferred {entries} {are} due now{none}\n")


def _fill_servers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="JSON instead of text, an object for each server")


def _servers(source: QueueSource, arguments: argparse.Namespace, out: TextIO) -> None:
    from mailismus.admin.render.servers import ONE_SERVER, server_json, server_lines

    servers = source.servers()
    if arguments.json:
        for server in servers or ():
            out.write(server_json(server) + "\n")
    else:
        for line in [ONE_SERVER] if servers is None else server_lines(servers, time.time()):
            out.write(line + "\n")


COMMANDS: tuple[Command, ...] = (
    Command("list", Reach.SERVER_OR_FILES, "list entries, as mailq does", wording.LIST, _fill_list, _list),
    Command("count", Reach.SERVER_OR_FILES, "count entries, messages and bytes", wording.COUNT, _fill_count, _count),
    Command("shape", Reach.SERVER_OR_FILES, "show for whom the queue waits, by age", wording.SHAPE, _fill_shape, _shape),
    Command("show", Reach.SERVER_OR_FILES, "show one message", wording.SHOW, _fill_show, _show),
    Command("why", Reach.SERVER_OR_FILES, "say why mail is still here", wording.WHY, _fill_why, _why),
    Command("flush", Reach.SERVER, "try deferred entries now", wording.FLUSH, fill_filter, _flush),
    *ACT_COMMANDS,
    Command("servers", Reach.SERVER_OR_FILES, "show the servers of the queue", wording.SERVERS, _fill_servers, _servers),
)
"""In the order of the help."""
WHY = next(command for command in COMMANDS if command.name == "why")
"""Also a command of its own."""
