"""A stopped queue is read as it would be found, from a copy too; its files are printed."""

from __future__ import annotations

import io
from collections.abc import Sequence

import attrs
import pytest

from mailismus.errors import Corrupt, StartError
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Entry, Filter, Message, Settlement
from mailismus.queue.providers.chunk.dump import dump
from mailismus.queue.providers.chunk.read.offline import open_readonly
from tests.chunk.harness import SPLIT, ChunkHarness
from tests.chunk.test_chunk_start import files_of
from tests.contracts.bench import LATER_REPLY, NO_REPLY, Bench, addresses
from tests.contracts.samples import letter


@pytest.fixture
def harness() -> ChunkHarness:
    return ChunkHarness()


@pytest.fixture
def bench(harness: ChunkHarness) -> Bench:
    bench = Bench(harness, harness.make())
    bench.put(addresses(3), letter(1, 500))
    first, second, third = bench.take_ids()
    bench.commit(
        (),
        [
            Settlement(first, Area.DEFERRED, bench.now() + 60, 2, LATER_REPLY, b"mx[192.0.2.9]:25"),
            Settlement(second, Area.BOUNCES, bench.now(), 1, NO_REPLY),
            Settlement(third, None),
        ],
    )
    bench.put([b"joe@home.example"], letter(2, 100_000))
    return bench


def in_milliseconds(entry: Entry) -> Entry:
    """As times are in lines."""
    return attrs.evolve(entry, due_at=int(entry.due_at * 1000 + 0.01) / 1000)


def seen(bench: Bench) -> dict[QueueId, Entry]:
    return {QueueId(message.spool_id, entry.number): in_milliseconds(entry) for message, entry in bench.search()}


def found_in(messages: Sequence[Message]) -> dict[QueueId, Entry]:
    return {QueueId(message.spool_id, entry.number): entry for message in messages for entry in message.entries}


def test_it_is_read_as_the_server_had_it(harness: ChunkHarness, bench: Bench) -> None:
    before, counts = seen(bench), bench.summary()
    stopped = open_readonly("/q", harness.disk)
    pages = [message for page in stopped.pages(Filter()) for message in page]
    assert found_in(pages) == before
    assert stopped.summary().areas == counts.areas
    assert stopped.gaps == ()
    for message in pages:
        assert b"".join(stopped.contents(message.spool_id)) == bench.read(message.spool_id)
    stopped.close()


def test_a_copy_is_read_though_its_names_are_no_numbers_of_inodes(harness: ChunkHarness, bench: Bench) -> None:
    before = seen(bench)
    for path in files_of(harness.disk):
        directory, _, number = path.rpartition("/")
        harness.disk.rename(path, f"{directory}/{int(number) + 100 * SPLIT}")
    stopped = open_readonly("/q", harness.disk)
    pages = [message for page in stopped.pages(Filter()) for message in page]
    assert found_in(pages) == before
    for message in pages:
        assert b"".join(stopped.contents(message.spool_id))


def test_a_bounce_that_a_report_has_ended_is_not_listed(harness: ChunkHarness, bench: Bench) -> None:
    """Its link is durable, and the mark of the bounce not yet."""
    (bounce,) = bench.take_ids(Area.BOUNCES)
    report = bench.submission([b"a@b.example"], sender=b"")
    bench.queue.commit([report], [Settlement(bounce, None)])
    for _ in range(1000):
        if any("/todo/" in path and b"\n E " in harness.disk.content_of(path) for path in harness.disk.names):
            break
        harness.clock.advance(0.0001)
    stopped = open_readonly("/q", harness.disk)
    found = [
        (message.spool_id, entry.area) for page in stopped.pages(Filter()) for message in page for entry in message.entries
    ]
    assert (report.draft.spool_id, Area.INCOMING) in found
    assert Area.BOUNCES not in {area for _, area in found}


def test_a_file_that_does_not_check_is_a_gap(harness: ChunkHarness, bench: Bench) -> None:
    (path,) = (path for path in files_of(harness.disk) if "/bounce/" in path)
    harness.disk.damage(path, 20, b"?")
    stopped = open_readonly("/q", harness.disk)
    summary = stopped.summary()
    assert (summary.exact, [gap.path for gap in summary.gaps]) == (False, [path])
    assert summary.areas[Area.BOUNCES].entries == 0
    assert summary.areas[Area.DEFERRED].entries == 1


def test_where_no_queue_is_there_is_none(harness: ChunkHarness) -> None:
    with pytest.raises(FileNotFoundError):
        open_readonly("/elsewhere", harness.disk)


def printed(harness: ChunkHarness, path: str) -> str:
    out = io.StringIO()
    dump(path, out, harness.disk)
    return out.getvalue()


def test_every_file_is_printed(harness: ChunkHarness, bench: Bench) -> None:
    text = {path.split("/")[2]: printed(harness, path) for path in files_of(harness.disk)}
    assert text["todo"].startswith("envelope of ")
    assert "  live at 0: IA " in text["todo"]
    assert "1 live, 0 done, 0 that do not check" in text["bounce"]
    assert " from <" in text["info"]
    assert "which check" in text["mess"]
    assert printed(harness, "/q/ids/00000001").startswith("epoch of spool ids 00000001: ")
    harness.disk.create("/q/ids/00000002.0000000a").close()
    assert printed(harness, "/q/ids/00000002.0000000a") == "spool id 000000020000000A, taken by a program for one message\n"
    assert printed(harness, "/q/conf-split") == f"parts of the directories: {SPLIT}\n"
    bench.remove(bench.take_ids(Area.BOUNCES))
    (path,) = (path for path in files_of(harness.disk) if "/bounce/" in path)
    assert "  done at 0: BA " in printed(harness, path)


def test_what_does_not_check_is_told(harness: ChunkHarness, bench: Bench) -> None:
    for path in files_of(harness.disk):
        if "/intd/" in path:
            continue  # the file of the envelope has two names
        harness.disk.damage(path, 20, b"\x7f")
        with pytest.raises(Corrupt):
            printed(harness, path)
    with pytest.raises(StartError, match="is no file of a queue"):
        printed(harness, "/q/provider")
