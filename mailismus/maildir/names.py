"""Names of messages in a maildir: `time.MusecPpidQn.host`, never the same twice.

*Rules*: time is UTC seconds, M its microseconds, P the process id, Q counts deliveries of this process. In the host's name
`/` is written `\\057` and `:` `\\072`, as readers of maildirs expect. No part of an address or a message is in a name. The
process id is read for each name, because a daemon is another process than the one that made this object.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable


class NameSource:
    """Makes names; safe from several threads (the count is one step of the interpreter)."""

    def __init__(self, host: bytes, process_id: Callable[[], int] = os.getpid) -> None:
        text = "".join(chr(byte) if 33 <= byte < 127 else "_" for byte in host) or "localhost"
        self._host = text.replace("/", r"\057").replace(":", r"\072")
        self._process_id = process_id
        self._count = itertools.count(1)

    def next_name(self, now: float) -> str:
        """A name for a message delivered at `now` (UTC seconds)."""
        micros = int(now * 1_000_000)
        return f"{micros // 1_000_000}.M{micros % 1_000_000:06d}P{self._process_id()}Q{next(self._count)}.{self._host}"
