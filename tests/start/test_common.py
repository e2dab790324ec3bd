"""Servers of a shared queue have one salt, and one message store, which is proved by a file in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import attrs
import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from mailismus.deliver.knowledge.host_sharing import SharedHosts
from mailismus.errors import StartError, Unavailable
from mailismus.mail.ids import QueueId
from mailismus.queue.limits import ILimits
from mailismus.start.common import NAME, Common, Salt
from tests.deliver.known_hosts import destdb
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import MemoryWorker

T = TypeVar("T")
STORE = "/ms"
PATH = f"{STORE}/{NAME}"


@attrs.define
class Agreements:
    """What servers share, in memory."""

    values: dict[str, bytes] = attrs.field(factory=dict)
    is_away: bool = False

    @property
    def limits(self) -> ILimits:
        raise AssertionError("limits are of no use here")

    def agree(self, name: str, value: bytes) -> Deferred[bytes]:
        return fail(Unavailable("rows: no answer")) if self.is_away else succeed(self.values.setdefault(name, value))

    def agreed(self, name: str) -> Deferred[bytes | None]:
        return fail(Unavailable("rows: no answer")) if self.is_away else succeed(self.values.get(name))

    def has(self, queue_id: QueueId) -> bool:
        raise AssertionError("nobody asks for entries here")

    def next_number(self, name: str, above: int) -> Deferred[int]:
        raise AssertionError("nothing is numbered here")

    def tell(self, news: bytes) -> None:
        """Nobody hears."""

    def listen(self, on_news: Callable[[bytes], None]) -> None:
        """Nobody tells."""

    def keep(self, records: Mapping[str, tuple[bytes, float]], for_s: float) -> None:
        """Nothing is kept."""

    def kept(self) -> Deferred[Mapping[str, bytes]]:
        return succeed({})


def run(call: Coroutine[Deferred[Any], Any, T]) -> T:
    results: list[T] = []
    errors: list[BaseException | None] = []
    Deferred.fromCoroutine(call).addCallbacks(results.append, lambda failure: errors.append(failure.value))
    if errors:
        assert errors[0] is not None
        raise errors[0]
    return results[0]


class Server:
    """One server that starts. `random`: what it draws."""

    def __init__(self, agreements: Agreements, disk: MemoryDisk, random: bytes, store: str | None = STORE) -> None:
        clock = Clock()
        self.salt = Salt(lambda size: (random * size)[:size])
        self.worker = MemoryWorker(is_prompt=True)
        hosts = SharedHosts(destdb(), agreements, clock, clock.seconds, 10.0)
        self.common = Common(agreements, self.salt, self.worker, disk, store, hosts)

    def start(self) -> None:
        run(self.common.start())

    def refusal(self) -> StartError:
        with pytest.raises(StartError) as raised:
            self.start()
        return raised.value


@pytest.fixture
def agreements() -> Agreements:
    return Agreements()


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


def contents(disk: MemoryDisk) -> bytes:
    file = disk.open(PATH)
    try:
        return file.read_at(0, 1000)
    finally:
        file.close()


def write(disk: MemoryDisk, data: bytes) -> None:
    if not disk.exists(STORE):
        disk.make_directory(STORE)
    file = disk.create(PATH)
    file.write_at(0, [data])
    file.close()


def test_all_servers_have_the_salt_of_the_first(agreements: Agreements, disk: MemoryDisk) -> None:
    one, two = Server(agreements, disk, b"a"), Server(agreements, disk, b"b")
    assert one.salt() != two.salt()
    first = one.salt()
    one.start()
    two.start()
    assert one.salt() == two.salt() == first


def test_the_first_server_writes_the_proof_and_the_others_find_it(agreements: Agreements, disk: MemoryDisk) -> None:
    Server(agreements, disk, b"a").start()
    word = contents(disk)
    assert len(word) > 20
    Server(agreements, disk, b"b").start()
    Server(agreements, disk, b"a").start()
    assert contents(disk) == word
    assert PATH in disk.durable_names


def test_a_server_with_another_store_is_refused(agreements: Agreements, disk: MemoryDisk) -> None:
    Server(agreements, disk, b"a").start()
    refused = Server(agreements, MemoryDisk(), b"b").refusal()
    assert (refused.status, refused.setting) == (os.EX_CONFIG, "message_store/userpath")
    assert PATH in refused.text
    assert agreements.values["message_store"].decode() in refused.text  # how it is put right


def test_a_store_of_another_queue_is_refused(agreements: Agreements, disk: MemoryDisk) -> None:
    Server(agreements, disk, b"a").start()
    other = MemoryDisk()
    write(other, b"another\n")
    assert Server(agreements, other, b"b").refusal().status == os.EX_CONFIG


def test_a_store_that_has_a_proof_keeps_it_for_a_new_queue(agreements: Agreements, disk: MemoryDisk) -> None:
    write(disk, b"former\n")
    Server(agreements, disk, b"a").start()
    assert contents(disk) == b"former\n"
    Server(agreements, disk, b"b").start()


def test_the_remedy_of_a_refusal_works(agreements: Agreements, disk: MemoryDisk) -> None:
    Server(agreements, disk, b"a").start()
    other = MemoryDisk()
    remedy = Server(agreements, other, b"b").refusal().text
    word, _, path = remedy.partition("echo ")[2].partition(" > ")
    assert path == PATH
    write(other, f"{word}\n".encode())
    Server(agreements, other, b"b").start()


def test_a_server_that_lost_the_race_uses_the_word_of_the_other(disk: MemoryDisk) -> None:
    class Raced(Agreements):
        """Another server proposes, and writes, between the look and the proposal."""

        def agree(self, name: str, value: bytes) -> Deferred[bytes]:
            if name == "message_store" and name not in self.values:
                self.values[name] = b"the other"
                write(disk, b"the other\n")
            return super().agree(name, value)

    Server(Raced(), disk, b"a").start()
    assert contents(disk) == b"the other\n"


def test_without_mailboxes_nothing_is_proved(agreements: Agreements, disk: MemoryDisk) -> None:
    server = Server(agreements, disk, b"a", None)
    server.start()
    assert not server.worker.is_started
    assert not disk.exists(PATH)


def test_services_that_are_away_end_the_start(agreements: Agreements, disk: MemoryDisk) -> None:
    agreements.is_away = True
    assert Server(agreements, disk, b"a").refusal().status == os.EX_TEMPFAIL


def test_a_store_that_can_not_be_read_ends_the_start(agreements: Agreements, disk: MemoryDisk) -> None:
    server = Server(agreements, disk, b"a")
    server.worker.fault = OSError(5, "Input/output error")
    refused = server.refusal()
    assert (refused.status, refused.setting) == (os.EX_IOERR, "message_store/userpath")
