"""Two copies that tell each other what they know of hosts know the same in the end, however their records travel."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from mailismus.deliver.knowledge.host_records import HostRecord, HostSharing
from mailismus.deliver.schedule.destdb import Deaths, HostFailure
from mailismus.mail.reply import Reply
from tests.deliver.known_hosts import connect, destdb, fail, succeed

REFUSED = Reply(451, b"4.4.1", b"refused")
UTC = 1_700_000_000.0


class Copy:
    """One server's knowledge; its monotonic clock began when it did."""

    def __init__(self, began_at: float) -> None:
        self.hosts = destdb(Deaths(300.0, 7200.0))
        self.offset_s = began_at
        self.utc = UTC

    @property
    def now(self) -> float:
        return self.utc - self.offset_s

    def fail(self, address: str, kind: HostFailure = HostFailure.NO_CONNECTION) -> None:
        fail(self.hosts, address, REFUSED, kind, self.now)

    def records(self) -> list[HostRecord]:
        return sorted(self.hosts.records(self.offset_s))


class Wire:
    """`HostSharing` of one copy that forgets the order, says things twice, and is late."""

    def __init__(self, other: Copy, chance: random.Random) -> None:
        self._other, self._chance = other, chance
        self._waiting: list[HostRecord] = []

    def publish(self, records: Sequence[HostRecord]) -> None:
        self._waiting += records
        self._chance.shuffle(self._waiting)

    def arrive(self, share: float = 1.0) -> None:
        """Some of it arrives, and of that some again later."""
        count = round(len(self._waiting) * share)
        arrived, self._waiting = self._waiting[:count], self._waiting[count:]
        self.adopt(arrived)
        if share < 1.0:
            self._waiting += self._chance.sample(arrived, len(arrived) // 3)

    def adopt(self, records: Sequence[HostRecord]) -> None:
        self._other.hosts.adopt(records, self._other.now, self._other.offset_s)


@pytest.mark.parametrize("seed", range(20))
def test_copies_converge(seed: int) -> None:
    chance = random.Random(seed)
    copies = [Copy(UTC - 86_400.123), Copy(UTC - 77.7)]
    wires = [Wire(copies[1], chance), Wire(copies[0], chance)]
    there: Sequence[HostSharing] = wires
    for step in range(200):
        for copy in copies:
            copy.utc = UTC + step * 7.125
        number = chance.randrange(2)
        copies[number].utc += 0.5 * number  # no two of one moment
        copies[number].fail(f"192.0.2.{chance.randrange(30)}", chance.choice(list(HostFailure)))
        if step % 5 == 0:
            there[number].publish(copies[number].records())
        wires[chance.randrange(2)].arrive(chance.random())
    for _ in range(2):
        for copy, wire in zip(copies, wires, strict=True):
            wire.publish(copy.records())
            wire.arrive()
    one, other = copies
    assert one.records() == other.records()
    assert len(one.records()) >= 25
    before = one.records()
    changes = one.hosts.changes
    wires[1].adopt(other.records() * 2)
    assert (one.records(), one.hosts.changes) == (before, changes)


def test_a_host_with_a_session_is_alive_whatever_others_say() -> None:
    one, other = Copy(UTC), Copy(UTC - 5)
    host = other.hosts.find("192.0.2.1", 25)
    connection = connect(other.hosts, "192.0.2.1", other.now)
    other.hosts.stand(connection, other.now)
    one.fail("192.0.2.1")
    Wire(other, random.Random(1)).adopt(one.records())
    assert not host.is_dead(other.now)
    other.hosts.leave(connection)
    other.hosts.close(connection, other.now)
    Wire(other, random.Random(1)).adopt(one.records())
    assert host.is_dead(other.now)


def test_a_host_that_others_found_alive_later_is_tried_at_once() -> None:
    one = Copy(UTC)
    one.fail("192.0.2.1")
    sharing = Wire(one, random.Random(1))
    sharing.adopt([HostRecord("192.0.2.1", 25, UTC - 1)])
    assert one.hosts.find("192.0.2.1", 25).is_dead(one.now)
    one.utc += 2
    sharing.adopt([HostRecord("192.0.2.1", 25, UTC + 1)])
    assert not one.hosts.find("192.0.2.1", 25).is_dead(one.now)
    assert one.hosts.remembered == 0


def test_no_more_hosts_are_adopted_than_are_remembered() -> None:
    hosts = destdb(limit=3)
    deaths = [HostRecord(f"192.0.2.{number}", 25, UTC + number, UTC + 300, 1, REFUSED) for number in range(5)]
    hosts.adopt(deaths, 10.0, UTC)
    assert [record.address for record in hosts.records(UTC)] == ["192.0.2.2", "192.0.2.3", "192.0.2.4"]


def test_records_are_those_of_the_moment_when_they_are_asked_for() -> None:
    one = Copy(UTC)
    for number in range(3):
        one.fail(f"192.0.2.{number}")
    found = one.hosts.records(one.offset_s)
    assert next(found).address == "192.0.2.0"
    succeed(one.hosts, "192.0.2.1", one.now)
    one.fail("192.0.2.9")
    assert [(record.address, record.failures) for record in found] == [("192.0.2.1", 0), ("192.0.2.2", 1)]
