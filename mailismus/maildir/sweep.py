"""The sweep of a maildir's `tmp`: removes files that a crash left there after 36 hours, as the format asks. Blocks.

*Rules*: regular files alone; at most `LIMIT` names in one sweep. Each maildir is swept at the first delivery into it and
then once a day; memory for the times is bounded.
"""

from __future__ import annotations

import os
import stat

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


def sweep(maildir: str, now: float) -> int:
    """Remove files of 36 hours and more from `tmp`; return their number. A file with an error stays. Raises OSError."""
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
