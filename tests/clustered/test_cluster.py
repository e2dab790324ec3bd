"""Clusters: names and places come back, and damage costs the damaged line alone."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.errors import NewerFormat
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.format.cluster import (
    DONE_MARK,
    LONGEST_HEADER,
    BadLine,
    ClusterId,
    FoundLine,
    Place,
    format_place,
    header_format,
    header_line,
    parse_cluster_path,
    parse_header,
    parse_place,
    read_lines,
    refuse_newer_cluster,
    scan_lines,
)
from mailismus.queue.providers.clustered.format.slots import slot_of

SLOT = "20261121T0800"
DEFERRED = ClusterId(Area.DEFERRED, SLOT, 12, 3)

NUMBERS = st.integers(0, 10**18 - 1)
SLOTS = st.floats(0, 250e9).map(lambda at: slot_of(at, at))
CLUSTERS = st.builds(ClusterId, st.sampled_from([Area.INCOMING, Area.BOUNCES]), st.just(""), NUMBERS, NUMBERS) | st.builds(
    ClusterId, st.just(Area.DEFERRED), SLOTS, NUMBERS, NUMBERS
)


def sample_lines(count: int = 5) -> list[bytes]:
    """Lines of a message with so many recipients."""
    message = Message(SpoolId(0x1_0000_0007), b"a@b.example", b"192.0.2.1", False, 1.7e9, 4711, count, [])
    reply = Reply(451, b"4.4.1", b"A 0000000100000007 1/1 \n x")
    entries = [
        Entry(n, b"r%d@c.example" % n, Area.DEFERRED, 1.7e9 + n, n, reply if n % 2 else None) for n in range(1, count + 1)
    ]
    return [format_lines(message, [entry]) for entry in entries]


def cluster_file(lines: list[bytes]) -> tuple[bytes, list[int]]:
    """A cluster's bytes and the offset of each line."""
    data, offsets = header_line(DEFERRED), []
    for line in lines:
        offsets.append(len(data))
        data += line
    return data, offsets


DATA, OFFSETS = cluster_file(sample_lines())


def read(data: bytes, committed: int | None = None) -> tuple[list[FoundLine], list[BadLine]]:
    """What is found, by both ways of reading: they agree but for what only the slow one looks at."""
    found: list[FoundLine] = []
    bad: list[BadLine] = []
    for item in read_lines(data, Area.DEFERRED, committed):
        if isinstance(item, BadLine):
            bad.append(item)
        else:
            found.append(item)
    scan_bad: list[BadLine] = []
    scanned = list(scan_lines(data, committed, scan_bad))
    count = [
        (line.offset, line.is_done, line.message.spool_id, line.entry.number, line.message.recipient_count) for line in found
    ]
    assert set(count) <= set(scanned)
    assert {line.offset for line in scan_bad} <= {line.offset for line in bad}
    assert len(scanned) + len(scan_bad) == len(count) + len(bad)
    return found, bad


def numbers(found: list[FoundLine]) -> list[int]:
    return [line.entry.number for line in found]


@given(CLUSTERS, st.integers(0, 10**18 - 1))
def test_a_place_is_one_word_and_comes_back(cluster: ClusterId, offset: int) -> None:
    place = Place(cluster, offset)
    word = format_place(place)
    assert len(word.split()) == 1
    assert parse_place(word) == place


@given(CLUSTERS)
def test_a_path_and_a_header_come_back(cluster: ClusterId) -> None:
    directory, _, file_name = cluster.path("/q").rpartition("/")
    assert directory == cluster.directory("/q")
    assert parse_cluster_path(cluster.area, cluster.slot, file_name) == cluster
    header = header_line(cluster)
    assert header.endswith(b"\n")
    assert parse_header(header[:-1]) == (cluster.area, cluster.checkpoint, cluster.number)


def test_names_and_places_read_as_documented() -> None:
    assert DEFERRED.path("/q") == "/q/deferred/20261121T0800/12-3.mqc"
    assert ClusterId(Area.INCOMING, "", 12, 3).path("/q") == "/q/incoming/12-3.mqc"
    assert ClusterId(Area.BOUNCES, "", 1, 0).path("/q") == "/q/bounces/1-0.mqc"
    assert format_place(Place(DEFERRED, 1041)) == b"deferred/20261121T0800/12-3.mqc:1041"
    assert header_line(DEFERRED) == b"MQC 1 deferred 12-3\n"


def test_the_header_of_format_2_has_a_crc() -> None:
    line = header_line(DEFERRED, 2)
    head = b"MQC 2 deferred 12-3"
    assert line == b"%b %08x\n" % (head, zlib.crc32(head))
    assert parse_header(line[:-1]) == (Area.DEFERRED, 12, 3)
    assert (header_format(line[:-1]), header_format(header_line(DEFERRED)[:-1])) == (2, 1)
    for at in range(len(line) - 1):
        changed = line[:at] + b"5" + line[at + 1 : -1]
        assert changed == line[:-1] or header_format(changed) == 0


def checked(head: bytes) -> bytes:
    return b"%b %08x" % (head, zlib.crc32(head))


@pytest.mark.parametrize(
    ("line", "of_format"),
    [
        (checked(b"MQC 3 anything at all"), 3),
        (checked(b"MQC 400 x"), 400),
        (b"MQC 3 deferred 12-3", 0),
        (b"MQC 3 deferred 12-3 00000000", 0),
        (checked(b"MQC 1 deferred 12-3"), 0),
        (checked(b"MQC 0 deferred 12-3"), 0),
        (checked(b"MQC 03 deferred 12-3"), 0),
        (checked(b"MQD 3 deferred 12-3"), 0),
        (checked(b"MQC 3 deferred\t12-3"), 0),
        (b"", 0),
    ],
)
def test_a_header_tells_its_format_if_it_checks(line: bytes, of_format: int) -> None:
    assert header_format(line) == of_format
    assert parse_header(line) is None
    if of_format:
        with pytest.raises(
            NewerFormat, match=rf"^/q/x is of format {of_format}, .*; this one reads 1 and 2: start that one$"
        ):
            refuse_newer_cluster("/q/x", line + b"\nany line\n")
    else:
        refuse_newer_cluster("/q/x", line + b"\nany line\n")


def test_a_header_is_no_longer_than_in_any_format() -> None:
    """The longest of names."""
    cluster = ClusterId(Area.INCOMING, "", 10**18 - 1, 10**18 - 1)
    assert len(header_line(cluster, 2)) <= LONGEST_HEADER


@pytest.mark.parametrize(
    "name",
    ["", "12-3", "12.mqc", "012-3.mqc", "12-03.mqc", "-12-3.mqc", "12-3.mqc\n", "12-3.msg", "1\u0662-3.mqc", "../1-1.mqc"],
)
def test_other_names_are_no_clusters(name: str) -> None:
    assert parse_cluster_path(Area.INCOMING, "", name) is None


def test_a_slot_belongs_to_deferred_and_only_there() -> None:
    for slot in ("", "hold", "x", "..", "20261321T0800"):
        assert parse_cluster_path(Area.DEFERRED, slot, "1-1.mqc") is None
    assert parse_cluster_path(Area.INCOMING, SLOT, "1-1.mqc") is None


@pytest.mark.parametrize(
    "word",
    [
        b"-",
        b"",
        b"incoming/1-1.mqc",
        b"incoming/1-1.mqc:",
        b"incoming/1-1.mqc:01",
        b"incoming/1-1.mqc:-1",
        b"incoming/01-1.mqc:1",
        b"incoming/1-1.mqc:1 ",
        b"/incoming/1-1.mqc:1",
        b"incoming/20261121T0800/1-1.mqc:1",
        b"deferred/1-1.mqc:1",
        b"deferred/hold/1-1.mqc:1",
        b"deferred/20261321T0800/1-1.mqc:1",
        b"corrupt/1-1.mqc:1",
        b"incoming/1-1.mqc:%b" % (b"9" * 19),
    ],
)
def test_other_words_are_no_places(word: bytes) -> None:
    assert parse_place(word) is None


@given(st.binary(max_size=60))
def test_no_bytes_break_the_parsers_of_names(word: bytes) -> None:
    assert parse_header(word) is None
    assert parse_place(word) is None
    assert parse_cluster_path(Area.DEFERRED, SLOT, word.decode("latin-1")) is None


def test_all_lines_are_found_where_they_lie_done_or_live() -> None:
    changed = bytearray(DATA)
    changed[OFFSETS[2]] = DONE_MARK[0]
    found, bad = read(bytes(changed))
    assert [line.offset for line in found] == OFFSETS
    assert [line.is_done for line in found] == [False, False, True, False, False]
    assert numbers(found) == [1, 2, 3, 4, 5]
    assert bad == []


def test_a_cluster_without_lines_is_whole() -> None:
    assert read(header_line(DEFERRED)) == ([], [])


@given(st.integers(0, len(DATA) - 1), st.integers(0, 255))
def test_a_changed_byte_costs_its_own_line_at_most(at: int, byte: int) -> None:
    changed = bytearray(DATA)
    changed[at] = byte
    found, bad = read(bytes(changed))
    hit = sum(offset <= at for offset in OFFSETS)  # 0: the header
    assert set(numbers(found)) >= {1, 2, 3, 4, 5} - {hit}
    assert numbers(found) == sorted(set(numbers(found)))
    assert [line.offset for line in found] == [OFFSETS[number - 1] for number in numbers(found)]
    if hit and len(found) < 5:
        assert bad
    for line in bad:
        assert line.data == bytes(changed[line.offset : line.offset + len(line.data)])


def test_every_lost_line_end_costs_nothing() -> None:
    for lost in (b"?", b" ", b"x", b"\0"):
        assert numbers(read(DATA.replace(b"\n", lost))[0]) == [1, 2, 3, 4, 5]
        assert read(DATA.replace(b"\n", lost))[1] == []


def test_a_changed_body_is_seen_and_a_changed_state_is_live() -> None:
    for at in (OFFSETS[1] + 1, OFFSETS[1] + 30, OFFSETS[2] - 3):
        changed = bytearray(DATA)
        changed[at] ^= 1
        found, bad = read(bytes(changed))
        assert numbers(found) == [1, 3, 4, 5]
        assert bad == [BadLine(OFFSETS[1], bytes(changed[OFFSETS[1] : OFFSETS[2] - 1]))]
    for state in (b"\n", b"A", b"\0", b"X"):
        found, bad = read(DATA[: OFFSETS[1]] + state + DATA[OFFSETS[1] + 1 :])
        assert numbers(found) == [1, 2, 3, 4, 5]
        assert not any(line.is_done for line in found)
        assert bad == []


@given(st.integers(0, len(DATA)), st.integers(0, 300), st.sampled_from([b"\0", b"\n", b" ", b"A"]))
def test_a_hole_costs_the_lines_it_touches(at: int, size: int, fill: bytes) -> None:
    end = min(at + size, len(DATA))
    found, bad = read(DATA[:at] + fill * (end - at) + DATA[end:])
    ends = [*OFFSETS[1:], len(DATA)]
    untouched = {n + 1 for n in range(5) if end <= OFFSETS[n] or ends[n] <= at}
    assert set(numbers(found)) >= untouched
    assert len(found) == 5 or bad


@given(st.integers(1, len(DATA)))
def test_what_lies_behind_the_committed_length_is_nothing(cut: int) -> None:
    data = DATA[:cut] + b"garbage \n x"
    found, bad = read(data, OFFSETS[2])
    is_second_whole = cut >= OFFSETS[2] - 1  # an LF that is lost costs nothing
    assert numbers(found) == ([1, 2] if is_second_whole else [1] if cut >= OFFSETS[1] else [])
    assert bool(bad) is not is_second_whole
    assert read(DATA + b" torn", OFFSETS[3]) == read(DATA[: OFFSETS[3]])


def test_a_line_cut_short_is_bad_below_the_committed_length_alone() -> None:
    torn = DATA[:-20]
    assert read(torn, OFFSETS[4])[1] == []
    assert read(torn, len(torn))[1] == [BadLine(OFFSETS[4], DATA[OFFSETS[4] : -20])]
    assert read(torn, None)[1] == [BadLine(OFFSETS[4], DATA[OFFSETS[4] : -20])]
    assert read(torn, len(DATA))[1] == [BadLine(OFFSETS[4], DATA[OFFSETS[4] : -20]), BadLine(len(torn), b"")]


def test_lines_missing_below_the_committed_length_are_seen() -> None:
    found, bad = read(DATA[: OFFSETS[4]], len(DATA))
    assert numbers(found) == [1, 2, 3, 4]
    assert bad == [BadLine(OFFSETS[4], b"")]


def test_a_file_without_anything_is_bad_unless_nothing_counts() -> None:
    assert read(b"", None) == ([], [BadLine(0, b"")])
    assert read(b"", 0) == ([], [])
    assert read(DATA, 0) == ([], [])


@given(
    st.binary(max_size=400)
    | st.lists(st.sampled_from([b"\n", b" ", b"A ", DATA[-60:], DATA[:60], DATA[30:200]])).map(b"".join)
)
def test_no_bytes_break_the_readers(data: bytes) -> None:
    found, bad = read(data)
    assert found or bad or parse_header(data.rstrip(b"\n")) is not None


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_both_ways_of_reading_agree_on_whatever_is_done(states: list[bool]) -> None:
    lines = sample_lines(len(states))
    data, _ = cluster_file([DONE_MARK + line[1:] if done else line for line, done in zip(lines, states, strict=True)])
    found, bad = read(data, len(data))
    assert [line.is_done for line in found] == states
    assert bad == []
