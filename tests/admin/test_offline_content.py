"""Contents read from the files of a clustered queue that no server runs on."""

from __future__ import annotations

import pytest

from mailismus.errors import Corrupt, Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Filter
from mailismus.queue.providers.clustered.recovery.offline import open_readonly
from mailismus.queue.stopped import StoppedQueue
from mailismus.spool.silo import message_path
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.bench import Bench

SMALL = b"Subject: small\r\n\r\n..\r\n"
LARGE = b"Subject: large\r\n\r\n" + bytes(range(256)) * 1000


class Stopped:
    """The files of a queue that took two messages, a small and a large one."""

    def __init__(self, large: bytes = LARGE) -> None:
        self.harness = ClusteredHarness(queue_settings(largemsgsize=131072))
        bench = Bench(self.harness, self.harness.make())
        self.small_id = bench.put(content=SMALL)
        self.large_id = bench.put(content=large)
        self.harness.settle_down()
        self.harness.disk.kill()

    def open(self) -> StoppedQueue:
        return open_readonly("/q", "/s", self.harness.disk)


def test_contents_come_from_the_journal_and_from_message_files() -> None:
    stopped = Stopped()
    queue = stopped.open()
    assert [message.spool_id for page in queue.pages(Filter()) for message in page] == [stopped.small_id, stopped.large_id]
    assert b"".join(queue.contents(stopped.small_id)) == SMALL
    assert b"".join(queue.contents(stopped.large_id)) == LARGE


def test_a_content_in_the_journal_comes_in_pieces() -> None:
    large = LARGE[:130_000]
    stopped = Stopped(large)
    pieces = list(stopped.open().contents(stopped.large_id))
    assert b"".join(pieces) == large
    assert max(map(len, pieces)) <= 65536


def test_a_message_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="no such message"):
        list(Stopped().open().contents(SpoolId(7)))


@pytest.mark.parametrize("act", ["open", "read"])
def test_content_that_cannot_be_read_is_unavailable_as_in_the_running_server(act: str) -> None:
    stopped = Stopped()
    queue = stopped.open()
    stopped.harness.disk.fault = lambda made, path: PermissionError(13, "Permission denied", path) if made == act else None
    for spool_id in (stopped.small_id, stopped.large_id):
        with pytest.raises(Unavailable, match=r"can't be read.*Permission denied"):
            list(queue.contents(spool_id))


def test_a_damaged_message_file_is_corrupt() -> None:
    stopped = Stopped()
    queue = stopped.open()
    stopped.harness.disk.damage(message_path("/s", stopped.large_id), 100, b"XX")
    with pytest.raises(Corrupt):
        list(queue.contents(stopped.large_id))


def test_a_journal_that_is_used_anew_meanwhile_gives_no_foreign_bytes() -> None:
    stopped = Stopped()
    queue = stopped.open()
    (segment,) = [name for name in stopped.harness.disk.names if name.endswith("00000001.mqj")]
    stopped.harness.disk.damage(segment, 0, bytes(64))
    with pytest.raises(Unavailable, match="has changed"):
        list(queue.contents(stopped.small_id))
