"""Acts of requests: mail, outcomes, start records, moves; and of the batches that carry them.

    asked --written--> in flight --barrier--> durable, untold --told--> applied, answered

In step with `commit.asked`, `commit.items`, `control.moves`, `control.ledger`, and `journal.commit`.
"""

from __future__ import annotations

from tests.durability.log_model.state import (
    ASKED,
    LIVE,
    OVER,
    Batch,
    Delivery,
    Envelope,
    Finish,
    Garbage,
    Header,
    Item,
    Known,
    Moved,
    Other,
    Place,
    Record,
    Sent,
    Start,
)
from tests.durability.log_model.world import World

# what is asked for


def submit(world: World, number: int) -> None:
    """A message comes."""
    count = world.scenario.messages[number]
    world.sent[number] = Sent("s", ((LIVE, 0, 0),) * count)
    envelope = Envelope(number, tuple((recipient, 0) for recipient in range(count)), 0)
    _ask(world, Item("new", (envelope,), number))


def pass_by(world: World) -> None:
    """Mail comes and goes that nothing else has to do with."""
    world.spend(others=1)
    _ask(world, Item("other", (Other(world.left.others),), -1))


def settle(world: World, name: Place, recipient: int, *, is_retried: bool) -> None:
    """An attempt is over; `is_retried`: a replacement keeps the entry."""
    known = world.memory.known(name)
    attempts = dict(known.entries)[recipient]
    left = known.left - {recipient}
    end: Record = Delivery(known.place, (recipient,)) if left else Finish(known.place)
    world.know_envelope(name, known._replace(left=left))
    if not is_retried:
        world.decide(known.message, recipient, lambda fate: (ASKED, *fate[1:]))
        return _ask(world, Item("settle", (end,), name, recipient))
    world.decide(known.message, recipient, lambda fate: (fate[0], fate[1], attempts + 1))
    envelope = Envelope(known.message, ((recipient, attempts + 1),), known.content)
    if world.keeps("a replacement and its end stand in one batch"):
        return _ask(world, Item("settle", (envelope, end), name, recipient))
    _ask(world, Item("settle", (end,), name, recipient))
    return _ask(world, Item("late", (envelope,), name, recipient))


def start_work(world: World, name: Place) -> None:
    """A delivery lasts: its start record goes with the next batch."""
    world.spend(starts=1)
    known = world.memory.known(name)
    world.know_envelope(name, known._replace(is_start_asked=True))
    world.know(riding=(*world.memory.riding, Item("start", (Start(known.place),), name)))


def move(world: World, name: Place, *, with_content: bool) -> None:
    """An envelope is to be written again: it hangs in the suffix, or its segment is emptied."""
    world.spend(moves=1)
    known = world.memory.known(name)
    envelope = Envelope(known.message, known.entries, 0 if with_content else known.content)
    records: tuple[Record, ...] = Moved(known.place), envelope
    if known.is_touched and world.keeps("a move of work has a start record beside it"):
        records = Start(known.place), *records
    world.know_envelope(name, known._replace(is_moving=True))
    item = Item("move", records, name, pin=world.memory.applied + 1)
    world.know(prepared=(*world.memory.prepared, item))


def ride(world: World) -> None:
    """A prepared move goes with the next batch."""
    memory = world.memory
    world.know(prepared=memory.prepared[1:], riding=(*memory.riding, memory.prepared[0]))


def _ask(world: World, item: Item) -> None:
    world.know(waiting=(*world.memory.waiting, item))


# batches


def is_full(world: World) -> bool:
    """The next batch begins a segment."""
    return world.memory.slot == world.scenario.slots


def begin_segment(world: World, number: int, last_good: int) -> None:
    """The next batch goes into a new segment."""
    world.know(segment=number, slot=0)
    world.disk.put(("H", number), Header(number, last_good + 1, last_good, world.memory.horizon))


def may_write(world: World) -> bool:
    """A batch may be written: the one before is durable."""
    memory = world.memory
    if not memory.waiting or memory.untold is not None:
        return False
    return memory.flight is None or (is_full(world) and not world.keeps("a new segment waits for the end of the old one"))


def write_batch(world: World) -> None:
    """All that waits, in order, and what rides along."""
    if is_full(world):
        begin_segment(world, world.memory.segment + 1, world.memory.sequence)
    memory = world.memory
    items = (*memory.waiting, *memory.riding)
    if not world.keeps("a replacement and its end stand in one batch") and not memory.riding:
        items = items[:1]
    put_batch(world, Batch(memory.sequence + 1, tuple(record for item in items for record in item.records)))
    rest = memory.waiting[len(items) :]
    world.know(sequence=memory.sequence + 1, flight=(*(memory.flight or ()), *items), waiting=rest, riding=())
    if not world.keeps("a batch is told when it is durable"):
        world.know(flight=None, untold=items)
        tell(world)


def put_batch(world: World, batch: Batch) -> None:
    """Write it behind the last one."""
    memory = world.memory
    world.disk.put(("B", memory.segment, memory.slot), batch)
    world.know(slot=memory.slot + 1)


def barrier(world: World) -> None:
    """The batch is durable; the reactor does not know it yet."""
    memory = world.memory
    world.disk.sync(lambda key: key[0] in ("H", "B") and key[1] == memory.segment)
    world.know(flight=None, untold=memory.flight)


def tell(world: World) -> None:
    """It counts; only now it is answered, and what it says may be marked."""
    memory = world.memory
    world.know(untold=None, applied=memory.sequence, is_recovering=False)
    at = 0
    for item in memory.untold or ():
        _apply(world, item, memory.sequence, at)
        at += len(item.records)


def _apply(world: World, item: Item, sequence: int, at: int) -> None:
    if item.kind == "new":
        assert isinstance(item.subject, int)
        _lay(world, item, (sequence, at))
        world.sent[item.subject] = world.sent[item.subject]._replace(status="a")
    elif item.kind == "late":
        _lay(world, item, (sequence, at))
    elif item.kind not in ("other", "denial"):
        assert isinstance(item.subject, tuple)
        known = world.memory.known(item.subject) if item.subject in dict(world.memory.envelopes) else None
        if item.kind == "settle":
            _apply_settle(world, item, known, sequence, at)
        elif item.kind == "start" and known is not None:
            world.know_envelope(item.subject, known._replace(pin=known.pin or sequence, is_recorded=True))
        elif item.kind == "move":
            _apply_move(world, item, known, sequence, at)


def _lay(world: World, item: Item, place: Place) -> None:
    envelope = next(record for record in item.records if isinstance(record, Envelope))
    segment = world.memory.segment
    everyone = frozenset(recipient for recipient, _ in envelope.entries)
    known = Known(envelope.message, envelope.entries, everyone, place, segment, envelope.content or segment)
    world.know_envelope(place, known)
    for recipient, attempts in envelope.entries:
        world.decide(envelope.message, recipient, lambda fate, sure=attempts: (fate[0], sure, fate[2]))  # type: ignore[misc]  # bound at once


def _apply_settle(world: World, item: Item, known: Known | None, sequence: int, at: int) -> None:
    assert known is not None
    assert isinstance(item.subject, tuple)
    is_retried = isinstance(item.records[0], Envelope)
    if is_retried:
        _lay(world, item, (sequence, at))
    else:
        world.decide(known.message, item.recipient, lambda fate: (OVER, *fate[1:]) if fate[0] == ASKED else fate)
    pin = known.pin or sequence
    entries = tuple(entry for entry in known.entries if entry[0] != item.recipient)
    world.know_envelope(item.subject, known._replace(entries=entries, pin=pin, is_recorded=True) if entries else None)
    if not entries:
        # Of one that is moved meanwhile, the copy is over too when it is durable.
        world.know(garbage=world.memory.garbage | {Garbage(known.segment, known.place, pin)})


def _apply_move(world: World, item: Item, known: Known | None, sequence: int, at: int) -> None:
    assert isinstance(item.subject, tuple)
    memory, place = world.memory, (sequence, at + len(item.records) - 1)
    if known is None:
        world.know(garbage=memory.garbage | {Garbage(memory.segment, place, item.pin)})
        return
    envelope = item.records[-1]
    assert isinstance(envelope, Envelope)
    world.know(garbage=memory.garbage | {Garbage(known.segment, known.place, sequence)})
    pin = item.pin if known.is_touched else 0
    moved = known._replace(place=place, segment=memory.segment, content=envelope.content or memory.segment, pin=pin)
    is_recorded = known.is_recorded or isinstance(item.records[0], Start)
    if not world.keeps("an envelope waits until a record about it is durable"):
        is_recorded = bool(pin)
    world.know_envelope(item.subject, moved._replace(is_recorded=is_recorded, is_marked=False, is_moving=False))
