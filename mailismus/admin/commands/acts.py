"""The commands of acts: `queue hold|release|delete|bounce|redirect|acts|undo`.

*Rules*: a command says what it will do before it does it. Progress goes to a terminal alone. An act that the user interrupts
is interrupted in the server too, behind its slice.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from typing import TextIO

from mailismus.admin.client.acting import Preview, act, all_acts, go_on, preview
from mailismus.admin.client.source import QueueSource
from mailismus.admin.commands import wording
from mailismus.admin.commands.broken_pipe import give_up_output
from mailismus.admin.commands.command import Command, Reach, argument_type, fill_filter, positive
from mailismus.admin.commands.progress import ProgressLine
from mailismus.admin.protocol.acting import LONGEST_REASON, ShownAct
from mailismus.admin.render.listing import due_moment
from mailismus.config.values.units import UnitError, parse_time_ms
from mailismus.errors import StartError
from mailismus.mail.ids import parse_act_name
from mailismus.observe.amounts import moment, size
from mailismus.observe.text import shown
from mailismus.queue.acts.act import UNDOABLE, ActKind, ActState
from mailismus.queue.filter import ARRIVAL_FORMS, FilterError, parse_arrival_filter
from mailismus.queue.interface import AreaCount
from mailismus.queue.redirect import is_address, parse_target

ASK_FROM = 100
"""Entries beyond which a command asks at a terminal."""
MOST_DOMAINS = 20
"""Rows of what an act would concern."""

_DONE = {
    ActKind.HOLD: "held",
    ActKind.RELEASE: "released",
    ActKind.DELETE: "deleted",
    ActKind.BOUNCE: "bounced",
    ActKind.REDIRECT: "redirected",
    ActKind.HOLD_INCOMING: "held",
}
_UNDO_STATES = frozenset((ActState.UNDOING, ActState.UNDONE))
_INCOMPLETE = frozenset((ActState.RUNNING, ActState.INTERRUPTED, ActState.UNDOING))
"""States in which an answer ends that is not complete: the server stops, or somebody else has interrupted the act."""
_FORM = "%Y-%m-%d %H:%M:%S"


def _fill_act(kind: ActKind, parser: argparse.ArgumentParser) -> None:
    fill_filter(parser)
    parser.add_argument("--reason", required=True, type=_reason, metavar="TEXT", help="why; it is logged and listed")
    parser.add_argument("--all", action="store_true", help="everything: needed without a FILTER")
    parser.add_argument("--dry-run", action="store_true", help="only say what it would concern")
    parser.add_argument("--limit", type=positive, metavar="N", help="at most N entries (default: all that match)")
    parser.add_argument("--yes", action="store_true", help=f"do not ask where more than {ASK_FROM} entries match")
    if kind is ActKind.HOLD:
        parser.add_argument("--for", dest="for_s", type=_seconds, metavar="TIME", help="release by itself behind this time")
        parser.add_argument("--incoming", action="store_true", help=f"a rule for mail to come; FILTERs: {ARRIVAL_FORMS}")
    if kind is ActKind.REDIRECT:
        parser.add_argument(
            "--to",
            required=True,
            type=argument_type(parse_target),
            metavar="RELAY|RECIPIENT",
            help="where to: HOST or HOST:PORT; or an address, which has an @",
        )


def _reason(text: str) -> str:
    if not text.strip() or len(text) > LONGEST_REASON:
        raise argparse.ArgumentTypeError(f"write a reason of at most {LONGEST_REASON} characters")
    return text.encode("utf-8", "replace").decode("utf-8")


@argument_type
def _seconds(text: str) -> float:
    seconds = parse_time_ms(text) / 1000
    if seconds <= 0:
        raise UnitError("write a time above 0, as in 2h")
    return seconds


def _name(text: str) -> str:
    if parse_act_name(text) is None:
        raise argparse.ArgumentTypeError("write the name of an act, as in A7: queue acts lists them")
    return text.upper()


def _fill_acts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="JSON instead of text, an object for each act")
    parser.add_argument("--resume", type=_name, metavar="ACT", help="go on with an act that was interrupted")


def _fill_undo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("act", type=_name, metavar="ACT", help="the name of an act, as in A7")


def _act(kind: ActKind, source: QueueSource, arguments: argparse.Namespace, out: TextIO) -> None:
    if not arguments.filter and not arguments.all:
        raise StartError(os.EX_USAGE, f"queue {kind.value}: write a FILTER, or --all for everything")
    if arguments.filter and arguments.all:
        raise StartError(os.EX_USAGE, f"queue {kind.value}: --all is for everything: write no FILTER with it")
    if getattr(arguments, "incoming", False):
        _hold_incoming(source, arguments, out)
        return
    for_s, to = getattr(arguments, "for_s", None), getattr(arguments, "to", "")
    found = preview(source, kind, arguments.filter, to)
    try:
        for line in _preview_lines(found, arguments.limit):
            out.write(line + "\n")
        out.flush()
    except BrokenPipeError:
        if arguments.dry_run:
            raise
        give_up_output()
        raise StartError(os.EX_IOERR, f"queue {kind.value}: its reader is gone, so nothing was changed") from None
    if arguments.dry_run:
        return
    concerned = min(found.concerned.entries, arguments.limit or found.concerned.entries)
    if concerned > ASK_FROM and not arguments.yes and not _is_wanted(kind, concerned, out):
        out.write("Nothing was changed.\n")
        return
    _watch(act(source, kind, arguments.filter, arguments.reason, arguments.limit, for_s, to), concerned, out)


def _hold_incoming(source: QueueSource, arguments: argparse.Namespace, out: TextIO) -> None:
    if arguments.dry_run or arguments.limit is not None:
        raise StartError(os.EX_USAGE, "queue hold --incoming: --dry-run and --limit are for mail that is here")
    try:
        parse_arrival_filter(arguments.filter)
    except FilterError as error:
        raise StartError(os.EX_USAGE, f"queue hold --incoming: {error}") from None
    kind = ActKind.HOLD_INCOMING
    _watch(act(source, kind, arguments.filter, arguments.reason, None, arguments.for_s), 0, out)


def _preview_lines(found: Preview, limit: int | None) -> Iterator[str]:
    count = found.concerned
    yield f"{_count(count.entries, 'entry', 'entries')} of {_count(count.messages, 'message', 'messages')} match"
    for name, entries in found.domains[:MOST_DOMAINS]:
        yield f"{entries:>10}  {shown(name)}"
    if len(found.domains) > MOST_DOMAINS:
        rest = sum(entries for _, entries in found.domains[MOST_DOMAINS:])
        yield f"{rest:>10}  (in {len(found.domains) - MOST_DOMAINS} more domains)"
    if limit is not None and limit < count.entries:
        yield f"at most {limit} of them, by --limit"
    if found.room_bytes is not None and count.entries:
        yield from _loss_lines(count, found.room_bytes, limit)


def _loss_lines(count: AreaCount, room_bytes: int, limit: int | None) -> Iterator[str]:
    """Say before a deletion what of it no undoing brings back."""
    if not room_bytes:
        yield "nothing of it is kept, by <undo> and <undospace>: it is gone at once, and can't be undone"
    elif room_bytes < count.stored_bytes and (limit is None or limit >= count.entries):
        kept, whole = size(room_bytes), size(count.stored_bytes)
        yield f"{kept} of {whole} are kept, by <undospace>: the rest is gone at once, and can't be undone"


def _is_wanted(kind: ActKind, count: int, out: TextIO) -> bool:
    """Ask at a terminal; elsewhere the command itself is the answer."""
    if not (out.isatty() and sys.stdin.isatty()):
        return True
    out.write(f"{kind.value} {count} entries? [y/N] ")
    out.flush()
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        out.write("\nNothing was changed.\n")
        raise
    if not answer:  # Ctrl-D leaves the cursor behind the question
        out.write("\n")
    return answer.strip().lower() in ("y", "yes")


def _watch(progress: Generator[ShownAct, None, None], total: int, out: TextIO) -> None:
    """Show an act until it has gone over the queue, then what it did. Raises `StartError`: 75 if it is not complete."""
    first: ShownAct | None = None
    found: ShownAct | None = None
    began_s = time.monotonic()
    terminal = ProgressLine(out)
    try:
        with closing(progress):
            for found in progress:
                first = first or found
                done = found.act.restored if found.act.state in _UNDO_STATES else found.act.entries
                terminal.write(_progress(done, total, time.monotonic() - began_s))
    except KeyboardInterrupt:
        is_complete = found is not None and found.act.state not in _INCOMPLETE
        out.write("\n" + ("It was complete already." if is_complete else _interrupted_line(found)) + "\n")
        raise
    except StartError:
        terminal.end()
        if found is not None:
            out.write(f"{found.act.name} is not complete; how far it has come: mailismus queue acts\n")
            out.flush()
        raise
    terminal.end()
    if first is None or found is None:
        return
    for line in _result_lines(found, first.act.restored):
        out.write(line + "\n")
    missed = total - found.act.entries - found.waiting
    if missed > 0 and found.act.state not in _INCOMPLETE:
        out.write(f"{missed} of those that matched had left or changed before it came to them\n")
    if found.act.state in _INCOMPLETE:
        out.flush()
        has_stopped = found.act.state is ActState.RUNNING
        stopped = f"{found.act.name} is not complete: the server stops, and its next start goes on"
        raise StartError(os.EX_TEMPFAIL, stopped if has_stopped else _interrupted_line(found))


def _progress(done: int, total: int, passed_s: float) -> str:
    rate = done / passed_s if passed_s > 0 else 0.0
    left = f", {(total - done) / rate:.0f} s left" if rate and total > done else ""
    return f"{done} of {total} entries, {rate:.0f}/s{left}" if total else f"{done} entries, {rate:.0f}/s"


def _interrupted_line(found: ShownAct | None) -> str:
    """What becomes of an act whose command was interrupted: the server ends it behind the slice under way."""
    if found is None:
        return "Whether the act has begun is not known: mailismus queue acts"
    one = found.act
    if one.state in _UNDO_STATES:
        return f"The undoing of {one.name} is interrupted; to go on: mailismus queue undo {one.name}"
    resume, undo = f"mailismus queue acts --resume {one.name}", f"mailismus queue undo {one.name}"
    back = f"; to take it back: {undo}" if one.order.kind in UNDOABLE else ""
    return f"{one.name} is interrupted; to go on: {resume}{back}"


def _result_lines(found: ShownAct, restored_before: int) -> Iterator[str]:
    """What an act has done; of an undoing: what was restored now, and before."""
    one = found.act
    restored = _count(one.restored - restored_before, "entry", "entries") + " restored"
    if restored_before:
        restored += f" now, {one.restored} in all"
    if one.state is ActState.UNDOING:
        yield f"{one.name} {one.state.value}: {restored} so far"
        return
    if one.state is ActState.UNDONE:
        left = one.entries - one.restored
        gone = f"; {left} {'is' if left == 1 else 'are'} not in its hands any more" if left > 0 else ""
        yield f"{one.name} {one.state.value}: {restored}{gone}"
        return
    if one.is_in_force:
        until = "" if one.until is None else f", until {due_moment(one.until, None, _FORM)}"
        undo = f"mailismus queue undo {one.name}"
        yield f"{one.name}: mail to come to this server that matches is held from now on{until}; to end it: {undo}"
        return
    kept = f", {one.removed} of them for good" if one.removed else ""
    until = "" if one.until is None else f" until {due_moment(one.until, None, _FORM)}"
    yield f"{one.name}: {_count(one.entries, 'entry', 'entries')} {_DONE[one.order.kind]}{until}{kept}"
    if found.waiting:
        more, back = ("is", "if it comes back, it is") if found.waiting == 1 else ("are", "those that come back are")
        yield f"{found.waiting} more {more} out for delivery: {back} {_DONE[one.order.kind]} then"


def _acts(source: QueueSource, arguments: argparse.Namespace, out: TextIO) -> None:
    if arguments.resume is not None:
        _watch(go_on(source, arguments.resume, is_undo=False), 0, out)
        return
    count = 0
    for found in all_acts(source):
        count += 1
        out.write((_act_json(found) if arguments.json else "\n".join(_act_lines(found))) + "\n")
    if not count and not arguments.json:
        out.write("No act is on record\n")


def _act_lines(found: ShownAct) -> Iterator[str]:
    one, order = found.act, found.act.order
    waiting = f" for {found.waiting}" if found.waiting else ""
    began = moment(one.begun_at, None, _FORM)
    yield f"{one.name:<6} {began}  {order.kind.value}, {one.state.value}{waiting}, by {_user(order.uid)}"
    facts = [f"{_count(one.entries, 'entry', 'entries')} of {_count(one.messages, 'message', 'messages')}"]
    facts += [f"{one.removed} for good"] if one.removed else []
    facts += [f"{one.restored} restored by {_user(one.undone_by)}"] if one.undone_by >= 0 else []
    facts += [f"to {_text(order.to)}"] if order.to else []
    facts += [f"until {due_moment(one.until, None, _FORM)}"] if one.until is not None else []
    yield f"       {', '.join(facts)}"
    words = " ".join(order.words) if order.words else "--all"
    yield f"       {_text(words)}: {_text(order.reason)}"


def _act_json(found: ShownAct) -> str:
    one, order = found.act, found.act.order
    return json.dumps(
        {
            "act": one.name,
            "kind": order.kind.value,
            "state": one.state.value,
            "begun": int(one.begun_at),
            "until": None if one.until is None else int(one.until),
            "uid": order.uid,
            "filter": list(order.words),
            "reason": order.reason,
            "limit": order.limit,
            "relay": order.to if order.to and not is_address(order.to) else None,
            "recipient": order.to if is_address(order.to) else None,
            "entries": one.entries,
            "messages": one.messages,
            "removed": one.removed,
            "restored": one.restored,
            "undone_by": one.undone_by if one.undone_by >= 0 else None,
            "waiting": found.waiting,
        }
    )


def _undo(source: QueueSource, arguments: argparse.Namespace, out: TextIO) -> None:
    _watch(go_on(source, arguments.act, is_undo=True), 0, out)


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return f"user {uid}"


def _text(text: str) -> str:
    return shown(text.encode("utf-8", "backslashreplace"))


def _command(kind: ActKind, summary: str, description: str) -> Command:
    fill: Callable[[argparse.ArgumentParser], None] = partial(_fill_act, kind)
    return Command(kind.value, Reach.SERVER_OR_LOCK, summary, description, fill, partial(_act, kind))


ACT_COMMANDS: tuple[Command, ...] = (
    _command(ActKind.HOLD, "hold entries back", wording.HOLD),
    _command(ActKind.RELEASE, "release entries that are on hold", wording.RELEASE),
    _command(ActKind.DELETE, "delete entries; they are kept for a while", wording.DELETE),
    _command(ActKind.BOUNCE, "return entries to their senders", wording.BOUNCE),
    _command(ActKind.REDIRECT, "send entries through another relay, or to another recipient", wording.REDIRECT),
    Command("acts", Reach.SERVER_OR_LOCK, "list what was done to the queue", wording.ACTS, _fill_acts, _acts),
    Command("undo", Reach.SERVER_OR_LOCK, "undo one of these acts", wording.UNDO, _fill_undo, _undo),
)
"""In the order of the help."""
