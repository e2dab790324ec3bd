"""Delivery of one message into one maildir, by the six steps of the format. Blocks: for a pool thread.

1. Open the maildir (an open directory replaces `chdir`, which a threaded process can't use). 2. Make a name and look for it
in `tmp`. 3. If it exists, make another, a few times. 4. Create the file exclusively. 5. Write the message, check every
count, sync, close. 6. Link the file into `new` and sync `new`: *now* the message is delivered. Then remove the name in
`tmp`. A crash before that leaves the name, and a sweep removes it after 36 hours.

Step 3 waits two seconds between two names: the caller does that, since no thread may wait. Beside, a delivery has 24 hours:
later it fails, well before a sweep removes its file. The name in `new` tells the size of the file (`S=`), for those who
count quotas. The file's mtime is the time of delivery.

*Rules*: files are 0600. Mail that does not fit into the quota is no message in `new`. Every failure is an `OSError` and
leaves no message in `new`, with one exception: if only the last sync fails, the message may be there, and the next attempt
makes a second copy.

*Not here*: which user an address belongs to, replies, threads; steps 2 to 4 (`chunks.access`) and 5 and 6
(`chunks.handler`).
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

from mailismus.chunks.access import AccessPoint
from mailismus.chunks.handler import WriteHandler
from mailismus.maildir.conversion import Conversion
from mailismus.maildir.quota import Quota
from mailismus.maildir.store import MaildirStore, OpenMaildir

LIFETIME_S = 24 * 3600.0
"""The longest that a delivery may take, by the rules of the format."""


class Delivery:
    """A delivery that has begun. Call `write` any number of times, then `finish`; call `abandon` after any failure."""

    def __init__(
        self, maildir: OpenMaildir, chunk: WriteHandler, quota: Quota, now: float, monotonic: Callable[[], float]
    ) -> None:
        self._maildir, self._chunk, self._quota = maildir, chunk, quota
        self._now, self._monotonic = now, monotonic
        self._ends_at = monotonic() + LIFETIME_S
        self._conversion = Conversion()

    def write(self, piece: bytes) -> None:
        """Write a piece of content as on the wire. Raises OSError."""
        self._check_age()
        self._chunk.write(self._conversion.convert(piece))

    def finish(self) -> None:
        """Do steps 5 and 6: the message is durable in `new` on return. Raises OSError, `MailboxFull`."""
        self._chunk.write(self._conversion.finish())
        size_bytes = self._chunk.size_bytes
        has_quota = self._quota.check(size_bytes, self._now)
        self._check_age()
        self._chunk.finish(self._maildir.new, f",S={size_bytes}", self._maildir.make_durable)
        if has_quota:
            self._quota.note(size_bytes)
        self._maildir.close()

    def _check_age(self) -> None:
        if self._monotonic() >= self._ends_at:
            raise TimeoutError(errno.ETIMEDOUT, "the delivery took a day")

    def abandon(self) -> None:
        """Close everything and remove the name in `tmp`. Harmless when repeated; never raises."""
        self._chunk.abandon()
        self._maildir.close()


def begin_delivery(
    store: MaildirStore,
    userpath: str,
    user: bytes,
    mailpath: str,
    now: float,
    head: bytes,
    monotonic: Callable[[], float] = time.monotonic,
) -> Delivery:
    """Do steps 1 to 4 in the maildir `userpath/USER/mailpath`, and write `head` (lines ending in LF) before the content.

    `now`: UTC seconds. Raises OSError; `chunks.access.NoFreeName`: wait two seconds, then try again.
    """
    maildir = store.begin(userpath, user, mailpath)
    try:
        chunk = AccessPoint(maildir.tmp, store.names, store.generator, tries=1).begin(now)
    except OSError:
        maildir.close()
        raise
    try:
        chunk.write(head)
    except OSError:
        chunk.abandon()
        maildir.close()
        raise
    return Delivery(maildir, chunk, Quota(maildir.root, maildir.tmp, store.generator), now, monotonic)
