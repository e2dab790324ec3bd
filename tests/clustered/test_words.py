"""Words in segments, clusters and repairs: which files say format 2, and that nobody loses a word."""

from __future__ import annotations

import re

import attrs
import pytest

from mailismus.journal.batch import BLOCK, decode_header
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.mail.words import check_message_words, check_recipient_words, decode_words, encode_words, split_words
from mailismus.queue.files.recipient_line import format_lines, parse_line
from mailismus.queue.interface import Area, Entry, Filter, Message, Settlement
from mailismus.queue.providers.clustered.format.cluster import header_format, header_line, parse_cluster_name
from mailismus.queue.providers.clustered.format.record import parse_checkpoint, parse_placed
from mailismus.queue.providers.clustered.recovery.offline import open_readonly
from mailismus.spool.silo import message_path
from tests.clustered.harness import ClusteredHarness
from tests.contracts.bench import Bench, addresses
from tests.contracts.words import LONGEST, OF_MESSAGE, OF_RECIPIENT, put
from tests.fakes.disk import MemoryDisk
from tests.fsck.worlds import LARGE, Stopped, kinds

Found = dict[QueueId, tuple[bytes | None, bytes | None]]

SPID = SpoolId(0x1_0000_0003)
REPLY = Reply(421, b"4.4.1", b"Connection refused")


def message(words: bytes | None = None) -> Message:
    return Message(SPID, b"alice@example.net", b"192.0.2.1", True, 1_795_249_001.705, 330, 2, [], 4, words)


def entry(words: bytes | None = None, reply: Reply | None = REPLY) -> Entry:
    host = b"mx[192.0.2.9]:25" if reply is not None else b"-"
    return Entry(2, b"joe@a.example", Area.DEFERRED, 1_795_249_901.0, 1, reply, host, words)


# a line


@pytest.mark.parametrize("reply", [REPLY, None])
@pytest.mark.parametrize("of_recipient", [None, b"n=1", OF_RECIPIENT, LONGEST])
@pytest.mark.parametrize("of_message", [None, b"N=", OF_MESSAGE])
def test_a_line_says_its_words_again(of_message: bytes | None, of_recipient: bytes | None, reply: Reply | None) -> None:
    line = format_lines(message(of_message), [entry(of_recipient, reply)])
    assert parse_line(line[:-1], Area.DEFERRED) == (message(of_message), entry(of_recipient, reply))


def test_a_line_without_words_is_as_it_was() -> None:
    assert format_lines(message(), [entry()]) == (
        b" A 0000000100000003 2/2 1795249001705 1795249901000 1 334 8BITMIME,DOTS=4 192.0.2.1 alice@example.net"
        b" joe@a.example 421 4.4.1 Connection%20refused mx[192.0.2.9]:25 58330a24\n"
    )


def test_words_stand_before_the_crc_those_of_the_message_first() -> None:
    line = format_lines(message(b"B=1 C=%20"), [entry(b"a=2")])
    assert re.search(rb" mx\[192\.0\.2\.9\]:25 B=1 C=%20 a=2 [0-9a-f]{8}\n$", line)


NO_WORDS = (b"", b" ", b"a", b"a=1 B=2", b"A=1 ", b"A=1  b=2", b"a=%", b"a=%2", b"a=\x80", b"=1", b"Ab=1")


@pytest.mark.parametrize("words", NO_WORDS)
def test_what_are_no_words_does_not_check(words: bytes) -> None:
    assert split_words(words) is None
    changed = attrs.evolve(entry(), words=words)
    assert parse_line(format_lines(message(), [changed])[:-1], Area.DEFERRED) is None


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (b"A=1", (b"A=1", None)),
        (b"a=1", (None, b"a=1")),
        (b"A=1 B=%0A a=1 b=", (b"A=1 B=%0A", b"a=1 b=")),
        (b"B=1 A=2 A=2", (b"B=1 A=2 A=2", None)),
    ],
)
def test_words_of_a_later_program_are_split_and_kept(words: bytes, parts: tuple[bytes | None, bytes | None]) -> None:
    assert split_words(words) == parts


def test_facts_come_back_from_their_words() -> None:
    facts = {b"X": bytes(range(256)), b"A": b"", b"LONGER-KEY-2": b"="}
    words = encode_words(facts)
    assert words is not None
    check_message_words(words)
    assert decode_words(words) == facts
    lower = encode_words({b"b": b"2", b"a": b"1"})
    assert lower == b"a=1 b=2"
    check_recipient_words(lower)
    assert encode_words({}) is None
    assert decode_words(None) == {}


def test_records_may_have_words_that_mean_nothing_yet() -> None:
    place = b"incoming/1-1.mqc:14"
    assert parse_placed(b"0000000100000003-2 %b a=1 b=2\n0000000100000003-1 - a=1\n" % place) == parse_placed(
        b"0000000100000003-2 %b\n0000000100000003-1 -\n" % place
    )
    text = b"horizon 4 epoch 2 checkpoint 1"
    assert parse_checkpoint(text + b" a=1\n" + place) == parse_checkpoint(text + b"\n" + place)
    assert parse_checkpoint(text + b" a\n") is None


# which files say what


def segment_formats(disk: MemoryDisk) -> list[int]:
    """Of the segments that were begun, in the order of their names."""
    paths = sorted(path for path in disk.names if path.endswith(".mqj"))
    headers = [decode_header(disk.content_of(path)[:BLOCK]) for path in paths]
    return [header.format for header in headers if header is not None]


def cluster_formats(disk: MemoryDisk) -> dict[str, int]:
    paths = [path for path in disk.names if path.endswith(".mqc")]
    return {path: header_format(disk.content_of(path).partition(b"\n")[0]) for path in paths}


@pytest.fixture
def harness() -> ClusteredHarness:
    return ClusteredHarness()


@pytest.fixture
def bench(harness: ClusteredHarness) -> Bench:
    return Bench(harness, harness.make())


def rest(bench: Bench) -> None:
    """Time for checkpoints."""
    for _ in range(20):
        bench.harness.advance(1)


def test_without_words_all_files_are_of_format_1(bench: Bench, harness: ClusteredHarness) -> None:
    bench.put(addresses(3))
    rest(bench)
    bench.queue = harness.crash(bench.queue)
    bench.put()
    assert set(segment_formats(harness.disk)) == {1}
    assert set(cluster_formats(harness.disk).values()) == {1}


def test_words_begin_a_segment_and_a_cluster_of_format_2(bench: Bench, harness: ClusteredHarness) -> None:
    bench.put(addresses(3))
    rest(bench)
    assert segment_formats(harness.disk) == [1]
    put(bench, OF_MESSAGE, OF_RECIPIENT)
    assert segment_formats(harness.disk) == [1, 2]
    bench.put()
    rest(bench)
    assert segment_formats(harness.disk) == [1, 2]
    assert sorted(cluster_formats(harness.disk).values()) == [1, 2]
    for path, of_format in cluster_formats(harness.disk).items():
        cluster = parse_cluster_name(path.removeprefix("/q/"))
        assert cluster is not None
        data = harness.disk.content_of(path)
        assert data.startswith(header_line(cluster, of_format))
        assert (b"ENVID=" in data) == (of_format == 2)


def test_words_of_a_settlement_alone_begin_them_too(bench: Bench, harness: ClusteredHarness) -> None:
    bench.put()
    (queue_id,) = bench.take_ids()
    bench.commit((), [Settlement(queue_id, Area.BOUNCES, bench.now(), 1, REPLY, b"mx", b"tries=1")])
    assert segment_formats(harness.disk) == [1, 2]


@pytest.mark.parametrize("rests", [False, True], ids=["in the journal", "in a cluster"])
def test_a_start_goes_on_with_format_2_as_long_as_there_are_words(
    bench: Bench, harness: ClusteredHarness, rests: bool
) -> None:
    put(bench, None, OF_RECIPIENT)
    if rests:
        rest(bench)
        bench.queue = harness.restart(bench.queue)
    bench.queue = harness.crash(bench.queue)
    assert harness.opened is not None
    assert harness.opened.writer.format == 2
    assert segment_formats(harness.disk)[-1] == 2
    bench.remove(bench.take_until(Area.INCOMING, 1)[0].queue_ids())
    rest(bench)
    for _ in range(3):
        bench.put()
        rest(bench)
        bench.queue = harness.restart(bench.queue)
    assert harness.opened.writer.format == 1
    assert set(cluster_formats(harness.disk).values()) == {1}


def test_mail_without_words_in_the_journal_begins_no_other_format(bench: Bench, harness: ClusteredHarness) -> None:
    put(bench, None, None)
    bench.queue = harness.crash(bench.queue)
    assert harness.opened is not None
    assert harness.opened.writer.format == 1
    assert len(bench.take_ids()) > 0


# others who read and write them


def found_offline(disk: MemoryDisk) -> Found:
    queue = open_readonly("/q", "/s", disk)
    return {
        QueueId(message.spool_id, entry.number): (message.words, entry.words)
        for page in queue.pages(Filter())
        for message in page
        for entry in message.entries
    }


@pytest.mark.parametrize("rests", [False, True], ids=["in the journal", "in a cluster"])
def test_offline_reading_gives_words(bench: Bench, harness: ClusteredHarness, rests: bool) -> None:
    spool_id = put(bench, OF_MESSAGE, OF_RECIPIENT, None)
    if rests:
        rest(bench)
    assert found_offline(harness.disk) == {
        QueueId(spool_id, 1): (OF_MESSAGE, OF_RECIPIENT),
        QueueId(spool_id, 2): (OF_MESSAGE, None),
    }


class WordyStopped(Stopped):
    """All mail has words."""

    def _put_resting(self, count: int) -> None:
        for _ in range(count // 2):
            put(self.bench, OF_MESSAGE, OF_RECIPIENT, None)
        for message in self.bench.take(Area.INCOMING):
            first, second = message.queue_ids()
            self.bench.defer([first], self.bench.now() + 900)
            self.bench.queue.give_back([second], 0.0)
        self.rest()

    def _put_young(self, count: int) -> None:
        for _ in range(count):
            put(self.bench, OF_MESSAGE, OF_RECIPIENT, None)
        self.harness.settle_down()


def flip(disk: MemoryDisk, path: str, *offsets: int) -> None:
    """Bits of these bytes change."""
    data = disk.content_of(path)
    for offset in offsets:
        disk.damage(path, offset, bytes((data[offset] ^ 4,)))


@pytest.mark.parametrize("forgets", [False, True])
def test_a_repair_keeps_words(forgets: bool) -> None:
    """Damaged headers, and lines with one byte and with several bytes damaged."""
    stopped = WordyStopped(forgets=forgets)
    before = found_offline(stopped.disk)
    assert len(before) == 14
    for queue_id, words in before.items():
        assert words == (OF_MESSAGE, OF_RECIPIENT if queue_id.number == 1 else None)
    assert kinds(stopped.check()) == []
    for area in (Area.INCOMING, Area.DEFERRED):
        path = stopped.clusters(area)[0]
        data = stopped.disk.content_of(path)
        assert header_format(data.partition(b"\n")[0]) == 2
        flip(stopped.disk, path, 1, data.rindex(b" A ") + 60)
        if not forgets:  # the journal still has it
            flip(stopped.disk, path, data.index(b" A ") + 50, data.index(b" A ") + 70)
    assert set(kinds(stopped.check())) >= {"cluster-header", "line-byte"}
    stopped.repair()
    assert kinds(stopped.check()) == []
    assert found_offline(stopped.disk) == before


def test_a_repair_that_makes_bounces_keeps_words() -> None:
    stopped = Stopped()
    stopped.bench = Bench(stopped.harness, stopped.harness.open())
    submission = stopped.bench.submission(addresses(1), b"x" * 2 * LARGE + b"\r\n")
    spool_id = submission.draft.spool_id
    stopped.bench.commit([submission._replace(envelope=submission.envelope._replace(words=OF_MESSAGE))])
    stopped.rest()
    stopped.harness.clock.calls.clear()
    stopped.disk.kill()
    flip(stopped.disk, message_path("/s", spool_id), 5, 700)
    assert "message-lost" in kinds(stopped.check())
    stopped.repair()
    assert found_offline(stopped.disk)[QueueId(spool_id, 1)] == (OF_MESSAGE, None)
    assert 2 in cluster_formats(stopped.disk).values()
