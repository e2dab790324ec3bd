"""Other servers are asked whether they have what may be theirs without a claim: nobody waits for those that have it not.

    new mail that waits -> b"who EPOCH id id .." to all -> b"not EPOCH id id .." of each that has it not

*Rules*: a server says of a share that it has it not where nothing of it is in its hand, and no commit of its own under way;
from then on, for `DENIED_S`, it trusts no trigger of that share, and claims it as all else. The broker hands out in order:
the first trigger of a share has left the queue when a second one comes, and may only be on its way. A server that stands
still says nothing, and neither does one that is asked too much. What is told may be lost: then one waits as if nobody had
been asked.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from uuid import UUID

from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.news import ServerNews

DENIED_S = 600.0
MOST_DENIED = 20_000
"""Shares of which this server knows that it has said so; it says so of no more."""
AT_A_TIME = 500
"""Shares in one message."""
_ASKED, _DENIED = b"who", b"not"
_EPOCH = re.compile(rb"[0-9]{1,19}")
_ID_DIGITS = 32

Denials = Callable[[int, Collection[UUID]], None]


class Enquiries:
    """What one server asks and answers. `epoch`: of its lease; `elapsed`: as `EnqueueClock`."""

    def __init__(self, hand: Hand, news: ServerNews, epoch: Callable[[], int], elapsed: Callable[[], float]) -> None:
        self._hand, self._news, self._epoch, self._elapsed = hand, news, epoch, elapsed
        self._denied: OrderedDict[UUID, float] = OrderedDict()
        """What it has not, and when it said so last."""
        self._on_denied: Denials = lambda epoch, names: None

    def start(self, on_denied: Denials) -> None:
        """Answer, and call this with the epoch of another server and the shares that it has not."""
        self._on_denied = on_denied
        self._news.listen(self._hear)

    def ask(self, names: Sequence[UUID]) -> None:
        """Ask all others whether they have these shares."""
        self._tell(_ASKED, names)

    def has_denied(self, name: UUID) -> bool:
        """Whether others rely on it that this server has not this share without a claim."""
        return self._denied.get(name, float("-inf")) > self._elapsed() - DENIED_S

    def _tell(self, word: bytes, names: Sequence[UUID]) -> None:
        for at in range(0, len(names), AT_A_TIME):
            ids = " ".join(name.hex for name in names[at : at + AT_A_TIME])
            self._news.tell(b"%b %d %b" % (word, self._epoch(), ids.encode()))

    def _hear(self, news: bytes) -> None:
        word, _, rest = news.partition(b" ")
        epoch, _, ids = rest.partition(b" ")
        if word not in (_ASKED, _DENIED) or not _EPOCH.fullmatch(epoch) or int(epoch) == self._epoch():
            return
        names = [name for text in ids.split(b" ", AT_A_TIME)[:AT_A_TIME] if (name := _name_of(text)) is not None]
        if word == _DENIED:
            self._on_denied(int(epoch), names)
        else:
            self._tell(_DENIED, [name for name in names if self._deny(name)])

    def _deny(self, name: UUID) -> bool:
        """Have it not, if that is so."""
        now = self._elapsed()
        while self._denied and next(iter(self._denied.values())) <= now - DENIED_S:
            self._denied.popitem(last=False)
        is_known = name in self._denied
        if name in self._hand.shares or name in self._hand.hidden or (len(self._denied) >= MOST_DENIED and not is_known):
            return False
        self._denied[name] = now
        self._denied.move_to_end(name)
        return True


def _name_of(text: bytes) -> UUID | None:
    if len(text) != _ID_DIGITS:
        return None
    try:
        return UUID(text.decode())
    except ValueError:
        return None
