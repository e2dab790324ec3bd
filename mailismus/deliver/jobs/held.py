"""Held entries: how many entries are taken and not yet settled or given back, in all and of each sender, and how many more
may be. Pure.

Takes may overlap, one of each area: room is kept for what each of them may bring, until it has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mailismus.deliver.jobs.room import kept_of, more_for
from mailismus.queue.interface import Message

WHOLE = 50
"""Entries of a message that are taken together where room allows: as many as a transaction has by default."""
PARTS = 20
"""And not more than one part in so many of all room: until as many are freed, senders that were passed over wait."""


class HeldEntries:
    """Counts the entries that the task holds. The code that settles or gives back entries calls `free`.

    `on_room_again`: called once after senders were passed over (`SenderShares`), when a hundredth of all room was freed, so
    that it is worth while to ask about them again. Perhaps within `free`.
    """

    def __init__(self, on_room_again: Callable[[], object]) -> None:
        self.count = 0
        """Entries taken and not yet settled or given back."""
        self.of_sender: dict[bytes, int] = {}
        """The same of each sender."""
        self.kept = 1
        """How much of the room is for small holders (`deliver.jobs.room`)."""
        self._promised: dict[bytes, int] = {}
        """Entries of each sender that takes with shares may bring."""
        self.whole = 0
        """Entries of a message that are taken together, or later."""
        self.limit = 0
        """How many entries may be held (`set_limit`)."""
        self.coming = 0
        """Entries that takes under way may bring."""
        self._wanted = 0
        """Room that is waited for; 0: none."""
        self._on_room: Callable[[], None] | None = None
        self._until_again = 0
        """How many more entries are to be freed before senders are asked about again; 0: none was passed over."""
        self._freed_for_again = 0
        """How many in all, since the first of them was passed over."""
        self._on_room_again = on_room_again

    def set_limit(self, limit: int) -> None:
        """Set how many entries may be held from now on."""
        self.limit, self.kept, self.whole = limit, kept_of(limit), min(WHOLE, limit // PARTS)
        if self._until_again:  # their shares may have grown
            self._ask_again()

    def room(self) -> int:
        """Return how many more may be held than there are and takes may bring; negative after a reload that lowered the
        limit."""
        return self.limit - self.count - self.coming

    def begin_take(self, limit: int) -> SenderShares | None:
        """Keep room for a take of `limit` entries until `end_take`. Return the shares of senders for it."""
        shares = self.shares(limit)
        self.coming += limit
        return shares

    def shares(self, limit: int) -> SenderShares | None:
        """Return the shares of senders for a take of `limit` entries that begins now; None: whatever it brings, nobody gets
        too much."""
        room = self.room()
        return SenderShares(self, limit) if more_for(self.limit - room, room, self.kept) < limit else None

    def end_take(self, limit: int, shares: SenderShares | None, messages: Iterable[Message] = ()) -> int:
        """A take has ended: count the entries that it brought, in place of those that it might have brought. Return how
        many. Perhaps calls `on_room_again`: too few may be left to be freed."""
        self.coming -= limit
        if shares is not None:
            shares.end()
        count = self.add(messages)
        if self._until_again > self.count:
            self._ask_again()
        return count

    def of(self, sender: bytes) -> int:
        """Return how many entries of a sender are held, or may be brought by takes with shares."""
        return self.of_sender.get(sender, 0) + self._promised.get(sender, 0)

    def promise(self, sender: bytes, count: int) -> None:
        """Note that a take may bring so many entries of a sender."""
        self._promised[sender] = self._promised.get(sender, 0) + count

    def end_promise(self, sender: bytes, count: int) -> None:
        """Note that these entries have come, or will not."""
        left = self._promised[sender] - count
        if left:
            self._promised[sender] = left
        else:
            del self._promised[sender]

    def wait_for(self, room: int, on_room: Callable[[], None]) -> None:
        """Call `on_room` once, as soon as entries are freed and so many more may be held. Replaces an earlier wish."""
        self._wanted, self._on_room = room, on_room

    def add(self, messages: Iterable[Message]) -> int:
        """Count the entries that were taken. Return how many."""
        count, of_sender = 0, self.of_sender
        for message in messages:
            sender, number = message.sender, len(message.entries)
            count += number
            of_sender[sender] = of_sender.get(sender, 0) + number
        self.count += count
        return count

    def note_passed_over(self, wanted: int = 0) -> None:
        """Note that a sender was passed over in a take. `wanted`: entries of a message that is taken whole. Senders are
        asked about again when as many were freed, so that there may be room for it, whatever others take."""
        freed = max(self.kept, wanted)
        if not self._until_again:
            self._until_again = self._freed_for_again = freed
        elif freed > self._freed_for_again:
            self._until_again += freed - self._freed_for_again
            self._freed_for_again = freed

    def free(self, sender: bytes, count: int) -> None:
        """Stop counting entries that were settled or given back: others may be taken."""
        self.count -= count
        left = self.of_sender.get(sender, 0) - count
        if left > 0:
            self.of_sender[sender] = left
        else:
            self.of_sender.pop(sender, None)
        if self._until_again:
            self._until_again -= count
            if self._until_again <= 0:
                self._ask_again()
        if self._wanted and self.room() >= self._wanted and self._on_room is not None:
            self._wanted = 0
            self._on_room()

    def _ask_again(self) -> None:
        self._until_again = 0
        self._on_room_again()


class SenderShares:
    """The shares of senders in one take of `limit` entries (`queue.interface.Shares`)."""

    def __init__(self, held: HeldEntries, limit: int) -> None:
        self._held = held
        self._limit = limit
        self._given: dict[bytes, int] = {}
        self._count = 0
        self._stopped: set[bytes] = set()
        """Senders of whom a small message was passed over: nothing of theirs goes before it in this take."""
        self.is_passed_over = False
        """Whether a sender was passed over."""

    def room_for(self, sender: bytes, wanted: int, *, is_cut: bool = False) -> int:
        held = self._held
        if sender in self._stopped:
            held.note_passed_over()  # again: in a take that lasts, senders may have been asked about since
            return 0
        of_sender = held.of(sender)
        more = more_for(of_sender, held.room() + self._limit - self._count, held.kept)
        if more < wanted:
            self.is_passed_over = True
            if wanted <= held.whole and of_sender and not is_cut:
                # Its recipients may share a transaction: taken whole, and later, as the sender is asked about again.
                held.note_passed_over(wanted)
                self._stopped.add(sender)
                wanted = 0
            else:
                held.note_passed_over()
                wanted = max(0, more)
        if wanted:
            self._given[sender] = self._given.get(sender, 0) + wanted
            held.promise(sender, wanted)
            self._count += wanted
        return wanted

    def in_order(self, senders: Iterable[bytes]) -> Sequence[bytes]:
        return sorted(senders, key=self._held.of)

    def end(self) -> None:
        """What was promised to senders has come, or will not."""
        for sender, count in self._given.items():
            self._held.end_promise(sender, count)
        self._given.clear()
