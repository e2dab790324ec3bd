"""The clean-up of a queue as it will be so many days later: `python -m benchmarks.distributed.cleaning CONFIG DAYS`.

No server runs. The browse starts are moved, and what lies behind is removed, by clocks that are ahead, ours and the
database's; then all rows are read, and all contents are listed. Prints a line of JSON: `rows` that are left, of shares
and marks, `index`: of messages, `objects`: contents, and for how many seconds it was moved and removed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any, cast

from twisted.internet.defer import Deferred

from mailismus.config.read.load import Loader, load
from mailismus.providers import PROVIDERS
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.format.tables import DELETED, ENQUEUED, MAILS
from mailismus.queue.providers.distributed.reaching import ReachedServices
from mailismus.queue.providers.distributed.stores.objects import IObjects
from mailismus.queue.providers.distributed.stores.rows import IRows
from mailismus.queue.providers.distributed.view.change import ViewSettings
from mailismus.queue.providers.distributed.view.current import CurrentView
from mailismus.queue.providers.distributed.view.history import ViewHistory

DAY_S = 86_400.0
PAGE = 1000


class _RowsAhead:
    """Rows of a database whose clock is ahead by so many seconds."""

    def __init__(self, rows: IRows, ahead_s: float) -> None:
        self._rows, self._ahead_s = rows, ahead_s

    def now(self) -> Deferred[float]:
        return self._rows.now().addCallback(lambda now_s: now_s + self._ahead_s)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)


async def move_starts(rows: IRows, view: ViewSettings, keep_s: float, now_s: float) -> float:
    """Move and remove what may be at this time. Return the seconds that it took."""
    current = CurrentView(ViewHistory(rows, "", lambda: now_s), view)
    await current.look()
    starts = Starts(rows, current.reading, lambda: now_s, keep_s)
    await starts.look()
    begun_s = time.monotonic()
    await starts.move()
    return time.monotonic() - begun_s


async def left_of(rows: IRows, objects: IObjects) -> dict[str, float]:
    """What is left."""
    tables = [len(await rows.all_rows(table)) for table in (ENQUEUED, DELETED)]
    found = {"rows": float(sum(tables)), "index": float(len(await rows.all_rows(MAILS))), "objects": 0.0}
    after = ""
    while keys := await objects.keys("mail/", after, PAGE):
        found["objects"] += len(keys)
        after = keys[-1]
    return found


def main(argv: Sequence[str]) -> int:
    """Clean up, and tell."""
    config, days = argv
    settings = load(config, Loader(providers=PROVIDERS.names)).settings.queue.services
    assert settings is not None, "a shared queue has services"
    view = settings.view
    wanted = ViewSettings(view.slicewindow_s, view.bucketcount, view.updatebrowsestartpace)
    reached = ReachedServices(settings)
    try:
        stores, ahead_s = reached.stores, float(days) * DAY_S
        rows = cast(IRows, _RowsAhead(stores.rows, ahead_s))
        seconds = reached.wait(move_starts(rows, wanted, view.keep_s, reached.now() + ahead_s))
        print(json.dumps({"seconds": seconds, **reached.wait(left_of(stores.rows, stores.objects))}))
    finally:
        reached.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
