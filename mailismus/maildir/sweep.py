"""The sweep of a maildir's `tmp`: removes files that a crash left there after 36 hours, as the format asks. Blocks.

*Rules*: regular files alone; at most `LIMIT` names in one sweep. Each maildir is swept at the first delivery into it and
then once a day; memory for the times is bounded.
"""

from __future__ import annotations

from mailismus.disk.interface import NameKind
from mailismus.maildir.store import MaildirStore

AGE_S = 36 * 3600.0
EVERY_S = 24 * 3600.0
LIMIT = 10_000
REMEMBERED = 50_000


class Sweeper:
    """When each maildir was swept. Safe from several threads: the worst is one sweep more."""

    def __init__(self) -> None:
        self._swept_at: dict[str, float] = {}

    def claim(self, maildir: str, now: float) -> bool:
        """Claim the sweep of this maildir: True if it is due, and then it counts as done. `now`: seconds that never jump."""
        last = self._swept_at.get(maildir)
        if last is not None and 0 <= now - last < EVERY_S:
            return False
        if len(self._swept_at) >= REMEMBERED:
            self._swept_at.clear()
        self._swept_at[maildir] = now
        return True


def sweep(store: MaildirStore, userpath: str, user: bytes, mailpath: str, now: float) -> int:
    """Remove files of 36 hours and more from `tmp`; return their number. A file with an error stays. Raises OSError."""
    maildir = store.open(userpath, user, mailpath)
    removed = 0
    try:
        for name in maildir.tmp.names()[:LIMIT]:
            try:
                found = maildir.tmp.describe(name)
                if found.kind is NameKind.FILE and now - found.changed_at > AGE_S:
                    maildir.tmp.unlink(name)
                    removed += 1
            except OSError:
                continue
    finally:
        maildir.close()
    return removed
