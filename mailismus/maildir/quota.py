"""The quota of a maildir, kept as Maildir++ has it, so that deliveries, Dovecot and Courier count the same. Blocks.

*Rules*
- The quota is that of the first line of `maildirsize`, which an administrator or Dovecot writes. Without that file there is
  none, and nothing is counted.
- Nothing is remembered: each delivery reads the file, since others change it.
- The mail is counted anew where the file makes no sense or is too long; and before a message is refused, unless the last
  count is the newest thing that happened and not older than `RECOUNT_S`. Mail that somebody removed without a word in the
  file is noticed by that.
- A count includes `new` and `cur` of the maildir and of its folders, as Dovecot's does. It is not written where the maildir
  changed meanwhile.
- Deliveries of one moment do not wait for each other: together they may exceed the quota by what they are.
- The file is no promise and needs no barrier: a crash may leave it short of a message, until it is written anew.

*Not here*: what the file looks like (`maildirsize`), what becomes of the mail (`deliver.local.deposit`).

Source: the Maildir++ specification.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mailismus.chunks.generator import NameGenerator
from mailismus.disk.interface import IDirectory, NameKind, close_read
from mailismus.errors import MailboxFull
from mailismus.maildir.maildirsize import (
    MAX_BYTES,
    NAME,
    Amount,
    MaildirSize,
    folders_of,
    format_change,
    format_whole,
    parse,
    size_in,
)

RECOUNT_S = 15 * 60.0
"""How old a count may be that refuses mail (Maildir++)."""
_MAIL = ("new", "cur")


class Quota:
    """The quota of one open maildir."""

    def __init__(self, maildir: IDirectory, tmp: IDirectory, generator: NameGenerator) -> None:
        """`generator`: of names in `tmp`. The directories stay the caller's."""
        self._maildir, self._tmp, self._generator = maildir, tmp, generator

    def check(self, size_bytes: int, now: float) -> bool:
        """Whether there is a quota; a message of this size has room then. `now`: UTC seconds. Raises `MailboxFull`,
        OSError."""
        found = self._read()
        if found is None:
            return False
        held = found.held
        wanted = Amount(size_bytes, 1)
        is_full = held is not None and not found.limit.has_room_for(held.plus(wanted))
        if held is None or (is_full and self._may_be_old(found, now)):
            held = self._count(found.limit, now)
        if not found.limit.has_room_for(held.plus(wanted)):
            raise MailboxFull(is_too_large=not found.limit.has_room_for(wanted))
        return True

    def note(self, size_bytes: int) -> None:
        """Note that a message of this size was delivered."""
        try:
            self._maildir.append(NAME, format_change(Amount(size_bytes, 1)))
        except OSError:
            return  # it was delivered, and the next count finds it

    # Internal

    def _read(self) -> MaildirSize | None:
        try:
            if self._maildir.describe(NAME).kind is not NameKind.FILE:
                return None
            file = self._maildir.open(NAME)
        except FileNotFoundError:
            return None
        try:
            data = file.read_at(0, MAX_BYTES + 1)
        finally:
            close_read(file)
        found = parse(data[:MAX_BYTES])
        if found is not None and len(data) >= MAX_BYTES:
            return MaildirSize(found.limit, None)
        return found

    def _may_be_old(self, found: MaildirSize, now: float) -> bool:
        """Whether a count may find less than the file says."""
        if found.changes:
            return True
        counted_at = self._maildir.describe(NAME).changed_at
        changed_at = max(self._maildir.describe(name).changed_at for name in _MAIL)
        return changed_at >= counted_at or not 0 <= now - counted_at < RECOUNT_S

    def _count(self, limit: Amount, now: float) -> Amount:
        """Count the mail, and write the file anew if nothing changed meanwhile."""
        before = self._changes()
        held = Amount()
        for mailbox in self._mailboxes():
            for name in _MAIL:
                held = held.plus(_amount_in(mailbox, name))
        stamp = self._generator.next(now)
        made = f"{stamp.seconds}.M{stamp.micros:06d}P{stamp.process_id}Q{stamp.count}.{NAME}"
        file = self._tmp.create(made)
        try:
            file.write_at(0, (format_whole(limit, held),))
            file.close()
            if self._changes() == before:
                self._tmp.rename(made, self._maildir, NAME)
                return held
        finally:
            close_read(file)
            try:
                self._tmp.unlink(made)
            except OSError:
                pass  # it was moved; or a sweep removes it
        return held

    def _changes(self) -> list[float]:
        """When the directories with mail changed last."""
        return [
            mailbox.describe(name).changed_at for mailbox in self._mailboxes() for name in _MAIL if _is_there(mailbox, name)
        ]

    def _mailboxes(self) -> Iterator[IDirectory]:
        """The maildir, and its folders while each is looked at."""
        yield self._maildir
        for name in sorted(folders_of(self._maildir.names())):
            with _opened(self._maildir, name) as folder:
                if folder is not None:
                    yield folder


def _is_there(directory: IDirectory, name: str) -> bool:
    try:
        return directory.describe(name).kind is NameKind.DIRECTORY
    except FileNotFoundError:
        return False


@contextmanager
def _opened(directory: IDirectory, name: str) -> Iterator[IDirectory | None]:
    """A directory below; None: that is none, or it is gone."""
    if not _is_there(directory, name):
        yield None
        return
    below = directory.open_directory(name)
    try:
        yield below
    finally:
        below.close()


def _amount_in(mailbox: IDirectory, name: str) -> Amount:
    """What lies in `new` or `cur` of a mailbox."""
    total = count = 0
    with _opened(mailbox, name) as directory:
        for message in directory.names() if directory is not None else ():
            if message.startswith("."):
                continue
            size_bytes = size_in(message)
            if size_bytes is None:
                assert directory is not None
                try:
                    size_bytes = directory.describe(message).size_bytes
                except FileNotFoundError:
                    continue  # a reader renamed or removed it
            total, count = total + size_bytes, count + 1
    return Amount(total, count)
