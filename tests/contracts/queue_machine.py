"""A provider against a plain dict: random acts, each answer compared."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Filter, Settlement
from tests.contracts.bench import Bench, addresses
from tests.contracts.harness import QueueHarness
from tests.fakes.shares import Most


@attrs.define
class _Known:
    """What the model knows of one entry."""

    area: Area
    wake_at: float
    attempts: int
    reply: Reply | None
    is_out: bool = False


class QueueMachine(RuleBasedStateMachine):
    """The acts. `make_harness` is set by `check_against_a_model`; `restart` is there for providers that can."""

    make_harness: Callable[[], QueueHarness]

    def __init__(self) -> None:
        super().__init__()
        self.harness = type(self).make_harness()
        self.bench = Bench(self.harness, self.harness.make())
        self.known: dict[QueueId, _Known] = {}
        self.contents: dict[SpoolId, bytes] = {}
        self.senders: dict[SpoolId, bytes] = {}
        self.passed_over: dict[Area, set[bytes]] = {area: set() for area in Area}
        """Senders that were passed over since the last `room_again`."""

    def teardown(self) -> None:
        try:
            self._drain()
        finally:
            self.harness.close()

    def _drain(self) -> None:
        """Whatever was done before: all that is left can be taken and settled, each entry once, and then nothing is left."""
        self.bench.queue.give_back([queue_id for queue_id, entry in self.known.items() if entry.is_out], self.bench.now())
        left = set(self.known)
        for _ in range(200):
            if not left:
                break
            self.harness.advance(20.0)
            self.bench.queue.room_again()
            for area in Area:
                taken = self.bench.take_ids(area, shares=Most(10_000))
                assert set(taken) <= left
                left -= set(taken)
                self.bench.remove(taken)
        assert not left
        assert self.bench.entry_count() == 0
        assert self.bench.search() == []

    @rule(
        number=st.integers(1, 6),
        size=st.sampled_from([0, 10, 5000, 140_000]),
        sender=st.sampled_from([b"a@b.example", b"c@d.example", b""]),
    )
    def put(self, number: int, size: int, sender: bytes) -> None:
        content = b"%d" % size + b"x" * size
        spool_id = self.bench.put(addresses(number), content, sender=sender)
        assert spool_id not in self.contents
        self.contents[spool_id], self.senders[spool_id] = content, sender
        for at in range(1, number + 1):
            self.known[QueueId(spool_id, at)] = _Known(Area.INCOMING, self.bench.now(), 0, None)

    @rule(
        area=st.sampled_from(list(Area)),
        limit=st.integers(0, 8),
        most=st.sampled_from([None, 0, 1, 2, 3, 4, 100]),
    )
    def take(self, area: Area, limit: int, most: int | None) -> None:
        now = self.bench.now()
        due: dict[bytes, int] = {}
        for queue_id, known in self.known.items():
            if known.area is area and not known.is_out and known.wake_at <= now:
                sender = self.senders[queue_id.spool_id]
                due[sender] = due.get(sender, 0) + 1
        allowed = sum(number if most is None else min(number, most) for number in due.values())
        count = 0
        per: dict[bytes, int] = {}
        shares = None if most is None else Most(most)
        for message in self.bench.take(area, limit, shares):
            assert message.sender == self.senders[message.spool_id]
            for entry in message.entries:
                known = self.known[QueueId(message.spool_id, entry.number)]
                assert not known.is_out
                assert known.wake_at <= now + 0.001
                assert (known.area, known.attempts, known.reply) == (area, entry.attempts, entry.reply)
                assert entry.area is area
                assert entry.recipient == b"r%d@d.example" % entry.number
                known.is_out = True
                count += 1
                per[message.sender] = per.get(message.sender, 0) + 1
        assert count <= limit
        assert most is None or all(number <= most for number in per.values())
        assert count <= allowed
        is_exact = shares is None or sum(shares.given.values()) == count  # no room was kept for entries that are gone
        if self.harness.takes_at_once and is_exact and not self.passed_over[area]:
            assert count == min(limit, allowed)
        if shares is not None:
            self.passed_over[area] |= shares.refused

    @rule()
    def room_again(self) -> None:
        """Nobody is passed over any more."""
        self.bench.queue.room_again()
        for passed_over in self.passed_over.values():
            passed_over.clear()

    @rule(
        data=st.data(),
        fate=st.sampled_from([None, Area.DEFERRED, Area.BOUNCES, Area.INCOMING]),
        wait_s=st.sampled_from([0, 5, 90]),
    )
    def settle(self, data: st.DataObject, fate: Area | None, wait_s: int) -> None:
        out = sorted(queue_id for queue_id, known in self.known.items() if known.is_out)
        if not out:
            return
        chosen = data.draw(st.lists(st.sampled_from(out), unique=True, max_size=5))
        due_at = self.bench.now() + wait_s
        settlements = []
        for queue_id in chosen:
            attempts = self.known[queue_id].attempts + 1
            reply = Reply(451, b"4.0.0", b"attempt %d" % attempts)
            settlements.append(Settlement(queue_id, fate, due_at, attempts, reply, b"mx[192.0.2.1]:25"))
            if fate is None:
                del self.known[queue_id]
            else:
                self.known[queue_id] = _Known(fate, due_at, attempts, reply)
        gone = self.bench.commit((), settlements)
        left = {queue_id.spool_id for queue_id in self.known}
        assert sorted(gone) == sorted({queue_id.spool_id for queue_id in chosen} - left)
        for spool_id in gone:
            del self.contents[spool_id]

    @rule(data=st.data(), wait_s=st.sampled_from([0, 0, 3]))
    def give_back(self, data: st.DataObject, wait_s: int) -> None:
        out = sorted(queue_id for queue_id, known in self.known.items() if known.is_out)
        if not out:
            return
        chosen = data.draw(st.lists(st.sampled_from(out), unique=True, max_size=5))
        not_before = self.bench.now() + wait_s
        self.bench.queue.give_back(chosen, not_before)
        for queue_id in chosen:
            self.known[queue_id].is_out = False
            self.known[queue_id].wake_at = not_before

    @rule()
    def flush(self) -> None:
        now = self.bench.now()
        self.bench.wait(self.bench.queue.visit_all(Filter(), now))
        for known in self.known.values():
            if known.area is Area.DEFERRED and not known.is_out:
                known.wake_at = min(known.wake_at, now)

    @rule(seconds=st.sampled_from([0.5, 4.0, 60.0]))
    def pass_time(self, seconds: float) -> None:
        self.harness.advance(seconds)

    @rule(limit=st.integers(1, 5))
    def look(self, limit: int) -> None:
        found = self.bench.search(limit=limit)
        assert len(found) == len(self.known)
        for message, entry in found:
            known = self.known[QueueId(message.spool_id, entry.number)]
            assert (known.area, known.attempts, known.reply) == (entry.area, entry.attempts, entry.reply)

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        if self.contents:
            spool_id = data.draw(st.sampled_from(sorted(self.contents)))
            assert self.bench.read(spool_id) == self.contents[spool_id]

    @rule()
    def stop_and_start(self) -> None:
        restart = getattr(self.harness, "restart", None)
        if restart is None:
            return
        self.bench.queue = restart(self.bench.queue)
        for passed_over in self.passed_over.values():
            passed_over.clear()
        # A start forgets what was handed out, given back for later and flushed: what is known to be due comes at least.
        for message, entry in self.bench.search():
            known = self.known[QueueId(message.spool_id, entry.number)]
            known.is_out = False
            known.wake_at = entry.due_at

    @invariant()
    def the_counts_agree(self) -> None:
        summary = self.bench.summary()
        for area, count in summary.areas.items():
            here = [queue_id for queue_id, known in self.known.items() if known.area is area]
            messages = {queue_id.spool_id for queue_id in here}
            size_bytes = sum(len(self.contents[spool_id]) for spool_id in messages)
            assert (count.entries, count.messages, count.stored_bytes) == (len(here), len(messages), size_bytes)


def check_against_a_model(make_harness: Callable[[], QueueHarness], examples: int = 30, steps: int = 30) -> None:
    """So many runs of so many random acts against harnesses made by `make_harness`."""

    class Machine(QueueMachine):
        pass

    Machine.make_harness = staticmethod(make_harness)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
