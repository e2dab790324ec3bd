"""Queues that earlier programs have left, killed: this one finds every entry and delivers each once, byte for byte."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import NamedTuple

import attrs
import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.recipient_line import LIVE, format_lines
from mailismus.queue.interface import Area, Entry, Filter, Message
from mailismus.queue.providers.clustered.format.cluster import FoundLine, parse_cluster_name, read_lines
from mailismus.queue.providers.clustered.fsck.check import checking_of, report_of
from mailismus.queue.providers.clustered.recovery.offline import open_readonly
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.bench import Bench
from tests.fakes.disk import MemoryDisk
from tests.fsck.worlds import LARGE, kinds

RECORDED = Path(__file__).with_name("recorded")
NAMES = ("counted", "linked")


class Expected(NamedTuple):
    """What was in a queue when its server was killed."""

    entries: dict[QueueId, dict[str, object]]
    contents: dict[SpoolId, bytes]


def load(name: str) -> tuple[MemoryDisk, Expected]:
    """The files as they were, all durable."""
    disk = MemoryDisk()
    with tarfile.open(RECORDED / f"{name}.tar.xz") as tar:
        for member in tar:
            path = f"/{member.name}"
            if member.isdir():
                disk.make_directory(path)
            elif member.islnk():
                disk.link(f"/{member.linkname}", path)
            elif member.name != "expected.json":
                extracted = tar.extractfile(member)
                assert extracted is not None
                disk.create(path).write_at(0, [extracted.read()])
        said = tar.extractfile("expected.json")
        assert said is not None
        expected = json.load(said)
    disk.sync_file_system("/")
    entries = {QueueId(SpoolId(one.pop("spool_id")), one.pop("number")): one for one in expected["entries"]}
    contents = {SpoolId(int(key)): value.encode("latin-1") for key, value in expected["contents"].items()}
    return disk, Expected(entries, contents)


def facts(message: Message, entry: Entry) -> dict[str, object]:
    """What the record says of an entry."""
    assert message.words is None
    assert entry.words is None
    reply = entry.reply
    return {
        "area": entry.area.value,
        "due_at": entry.due_at,
        "attempts": entry.attempts,
        "recipient": entry.recipient.decode(),
        "sender": message.sender.decode(),
        "client": message.client.decode(),
        "received_at": message.received_at,
        "reply": None if reply is None else [reply.code, reply.enhanced.decode(), reply.text.decode()],
        "host": entry.host.decode(),
    }


@pytest.mark.parametrize("hardlinks", [False, True], ids=["to counted", "to linked"])
@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_found_and_delivered_once_byte_for_byte(name: str, hardlinks: bool) -> None:
    disk, expected = load(name)
    harness = ClusteredHarness(queue_settings(largemsgsize=LARGE, hardlinks=hardlinks))
    harness.disk = disk
    bench = Bench(harness, harness.open())
    found = [(QueueId(message.spool_id, entry.number), facts(message, entry)) for message, entry in bench.search()]
    assert sorted(found, key=lambda one: one[0]) == sorted(expected.entries.items())
    delivered: list[QueueId] = []
    for area in Area:
        messages = bench.take(area, now=harness.now() + 10**6)
        for message in messages:
            assert bench.read(message.spool_id) == expected.contents[message.spool_id]
            delivered += message.queue_ids()
        bench.remove(queue_id for message in messages for queue_id in message.queue_ids())
    assert sorted(delivered) == sorted(expected.entries)
    harness.clock.pump([0.25] * 60)
    left = [path for path in disk.names if path.endswith((".mqc", ".msg"))]
    assert left == []
    assert disk.list_directory("/q/corrupt") == []


@pytest.mark.parametrize("name", NAMES)
def test_a_stopped_one_is_read_and_is_sound(name: str) -> None:
    disk, expected = load(name)
    queue = open_readonly("/q", "/s", disk)
    found = {
        QueueId(message.spool_id, entry.number): facts(message, entry)
        for page in queue.pages(Filter())
        for message in page
        for entry in message.entries
    }
    assert found == expected.entries
    for spool_id, content in expected.contents.items():
        assert b"".join(queue.contents(spool_id)) == content
    settings = queue_settings(largemsgsize=LARGE, hardlinks=name == "linked")
    # The next start makes the areas of acts, which a queue of format 1 does not have.
    assert kinds(report_of(checking_of(settings, disk, 1_700_000_000.0))) == ["directory-missing"] * 2


@pytest.mark.parametrize("name", NAMES)
def test_a_line_that_is_written_again_is_the_same_byte_for_byte(name: str) -> None:
    disk, _ = load(name)
    count = 0
    for path in disk.names:
        cluster = parse_cluster_name(path.removeprefix("/q/"))
        if cluster is None:
            continue
        data = disk.content_of(path)
        for line in read_lines(data, cluster.area, None):
            assert isinstance(line, FoundLine)
            again = format_lines(attrs.evolve(line.message, entries=[]), [line.entry])
            assert again == LIVE + data[line.offset + 1 : line.offset + len(again)]
            count += 1
    assert count >= 12
