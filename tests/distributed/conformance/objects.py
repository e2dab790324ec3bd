"""What `IObjects` promises."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import attrs
import pytest
from twisted.internet.defer import gatherResults

from mailismus.queue.providers.distributed.stores.failure import NotDone
from mailismus.queue.providers.distributed.stores.objects import PIECE_BYTES, IObjects
from tests.distributed.conformance.harness import ObjectsHarness

LARGE = bytes(range(256)) * 8192 + b"end"
"""2 MiB and a little."""


@attrs.frozen
class Body:
    """Bytes that are put. `claimed`: of what a wrong sum is."""

    data: bytes
    claimed: bytes | None = None

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    @property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.data if self.claimed is None else self.claimed).digest()

    def pieces(self) -> Iterator[bytes]:
        for place in range(0, len(self.data), PIECE_BYTES):
            yield self.data[place : place + PIECE_BYTES]


class ObjectsContract:
    """A test class makes a subclass with a fixture `harness`."""

    compares_sums = True
    """Whether the store compares what arrives with the SHA-256 that was sent."""

    @pytest.fixture(autouse=True)
    def _ends(self, harness: ObjectsHarness) -> Iterator[None]:
        yield
        harness.close()

    @pytest.fixture
    def objects(self, harness: ObjectsHarness) -> IObjects:
        client = harness.client()
        harness.wait(client.make())
        return client

    def read(self, harness: ObjectsHarness, objects: IObjects, key: str) -> bytes | None:
        found = harness.wait(objects.get(key))
        if found is None:
            return None
        pieces = []
        while piece := harness.wait(found.next()):
            assert len(piece) <= PIECE_BYTES
            pieces.append(piece)
        assert harness.wait(found.next()) == b""
        found.close()
        assert found.size_bytes == sum(map(len, pieces))
        return b"".join(pieces)

    def test_a_bucket_is_there_once_it_is_made(self, harness: ObjectsHarness) -> None:
        client = harness.client()
        assert not harness.wait(client.is_there())
        harness.wait(client.make())
        assert harness.wait(client.is_there())
        harness.wait(client.put("mail/a", Body(b"a")))
        harness.wait(client.make())
        assert self.read(harness, client, "mail/a") == b"a"

    def test_without_a_bucket_nothing_is_done(self, harness: ObjectsHarness) -> None:
        client = harness.client()
        with pytest.raises(NotDone):
            harness.wait(client.put("mail/a", Body(b"a")))
        with pytest.raises(NotDone):
            harness.wait(client.get("mail/a"))
        with pytest.raises(NotDone):
            harness.wait(client.keys(""))

    @pytest.mark.parametrize("data", [b"", b"a", bytes(range(256)) * 100, LARGE], ids=["empty", "byte", "small", "large"])
    def test_an_object_is_read_as_it_was_put(self, data: bytes, harness: ObjectsHarness, objects: IObjects) -> None:
        harness.wait(objects.put("mail/20261128/0000000100000001", Body(data)))
        assert self.read(harness, harness.client(), "mail/20261128/0000000100000001") == data

    def test_what_is_not_there_is_none(self, harness: ObjectsHarness, objects: IObjects) -> None:
        assert self.read(harness, objects, "mail/none") is None
        harness.wait(objects.remove("mail/none"))

    def test_the_same_again_is_harmless(self, harness: ObjectsHarness, objects: IObjects) -> None:
        for _ in range(2):
            harness.wait(objects.put("mail/a", Body(b"abc")))
        assert self.read(harness, objects, "mail/a") == b"abc"
        for _ in range(2):
            harness.wait(objects.remove("mail/a"))
        assert self.read(harness, objects, "mail/a") is None

    def test_keys_come_in_their_order_page_by_page(self, harness: ObjectsHarness, objects: IObjects) -> None:
        names = ["mail/1/a", "mail/1/b", "mail/1/c", "mail/2/a", "other/a"]
        harness.wait(gatherResults([objects.put(name, Body(b"x")) for name in names]))
        assert harness.wait(objects.keys("")) == names
        assert harness.wait(objects.keys("mail/1/")) == names[:3]
        assert harness.wait(objects.keys("mail/", limit=3)) == names[:3]
        assert harness.wait(objects.keys("mail/", "mail/1/c", 3)) == names[3:4]
        assert harness.wait(objects.keys("nothing")) == []

    def test_other_bytes_than_their_sum_are_refused(self, harness: ObjectsHarness, objects: IObjects) -> None:
        if not self.compares_sums:
            pytest.skip("this store compares the MD5 alone, which is made of the bytes that are sent")
        with pytest.raises(NotDone):
            harness.wait(objects.put("mail/a", Body(b"abc", b"abd")))
        assert self.read(harness, objects, "mail/a") is None

    def test_reading_may_end_early_and_another_goes_on(self, harness: ObjectsHarness, objects: IObjects) -> None:
        harness.wait(objects.put("mail/large", Body(LARGE)))
        first = harness.wait(objects.get("mail/large"))
        second = harness.wait(objects.get("mail/large"))
        assert first is not None
        assert second is not None
        assert LARGE.startswith(harness.wait(first.next()))
        first.close()
        first.close()
        found = b""
        while piece := harness.wait(second.next()):
            found += piece
        assert found == LARGE
        harness.pass_time(0.1)

    def test_many_at_once(self, harness: ObjectsHarness, objects: IObjects) -> None:
        bodies = {f"mail/{number}": b"%d" % number * 100 for number in range(60)}
        harness.wait(gatherResults([objects.put(key, Body(data)) for key, data in bodies.items()]))
        assert all(self.read(harness, objects, key) == data for key, data in bodies.items())
        harness.wait(gatherResults([objects.remove(key) for key in bodies]))
        assert harness.wait(objects.keys("mail/")) == []

    def test_a_key_of_other_letters_is_an_error(self, harness: ObjectsHarness, objects: IObjects) -> None:
        for key in ("", "A", "a b", "../x", "a+b", "ä"):
            with pytest.raises(ValueError, match="no key"):
                harness.wait(objects.put(key, Body(b"")))
