"""Missing journal: no segment was ever begun, or all are gone.

That is right at the first start of a queue. Where there is mail in other files, the journal was removed, or its file system
is not mounted: a start would remove this mail as leftovers of a crash.

*Not here*: a journal that is damaged, but not gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from mailismus.errors import StartError
from mailismus.journal.load import ReplayedJournal


def refuse_lost_journal(found: ReplayedJournal, journal_path: str, mail: Iterable[str]) -> None:
    """Raise `StartError`, having changed nothing, where there is mail and no journal. `mail`: paths of files with mail,
    searched only where no segment holds a batch."""
    if found.journal.used or found.is_doubtful:
        return
    path = next(iter(mail), None)
    if path is not None:
        text = (
            f"the journal is gone: {journal_path} holds none, but there is mail, such as {path}; "
            "bring the journal back, or run mailismus fsck --repair, which keeps what can be kept"
        )
        raise StartError(os.EX_DATAERR, text)
