"""The sweep of a maildir's `tmp`: what a crash left there goes after 36 hours, as the format asks. Blocking.

*Rules*: regular files alone; at most `LIMIT` names are looked at in one sweep; each maildir is swept at the first delivery
into it and then once a day; the memory of when is bounded.
"""

from __future__ import annotations

import os
import stat

AGE_S = 36 * 3600.0
EVERY_S = 24 * 3600.0
LIMIT = 10_000
REMEMBERED = 50_000


class Sweeper:
    """Knows which maildirs were swept when. Safe from several threads: the worst is a sweep more."""

    def __init__(self) -> None:
        self._swept_at: dict[str, float] = {}

    def claim(self, maildir: str, now: float) -> bool:
        """Whether this maildir should be swept now; if so it counts as done. `now`: seconds that never jump."""
        last = self._swept_at.get(maildir)
        if last is not None and 0 <= now - last < EVERY_S:
            return False
        if len(self._swept_at) >= REMEMBERED:
            self._swept_at.clear()
        self._swept_at[maildir] = now
        return True


def sweep(maildir: str, now: float) -> int:
    """Remove what has lain in `tmp` for 36 hours; gives the number. Trouble with one name leaves it. Raises OSError."""
    fd = os.open(os.path.join(maildir, "tmp"), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    removed = 0
    try:
        with os.scandir(fd) as entries:
            for count, entry in enumerate(entries):
                if count >= LIMIT:
                    break
                try:
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(found.st_mode) and now - max(found.st_mtime, found.st_ctime) > AGE_S:
                        os.unlink(entry.name, dir_fd=fd)
                        removed += 1
                except OSError:
                    continue
    finally:
        os.close(fd)
    return removed
