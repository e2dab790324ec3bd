"""A conversion changes nothing that a user or an administrator can see, whichever providers it goes from and to."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailismus.disk.posix import PosixDisk
from mailismus.providers import PROVIDERS
from mailismus.queue.convert.forgetting import forget_old
from mailismus.queue.files.conversion import ConversionState
from mailismus.queue.interface import Area
from tests.convert.kinds import (
    KINDS,
    NOW,
    PAIRS,
    Mail,
    QueueKind,
    convert_to,
    harness_of,
    look,
    make_queue,
    settings_of,
    stop,
)


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize(("source", "target"), PAIRS, ids=str)
def test_every_entry_and_byte_is_the_same(source: QueueKind, target: QueueKind, is_killed: bool, tmp_path: Path) -> None:
    before = make_queue(source, tmp_path, is_killed=is_killed)
    assert {entry.area for _, entries, _ in before.values() for entry in entries.values()} == set(Area)
    done = convert_to(target, tmp_path)
    assert done.copied is not None
    assert done.copied.entries == sum(len(entries) for _, entries, _ in before.values())
    assert done.copied.messages == len(before)
    assert done.conversion.state is ConversionState.MOVING_OUT
    assert look(target, tmp_path) == before
    assert look(source, tmp_path, "conversion/old") == before
    assert PROVIDERS.found_in(str(tmp_path / "queue")).name == target.provider


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=str)
def test_the_server_goes_on_with_ids_above_all_others(source: QueueKind, target: QueueKind, tmp_path: Path) -> None:
    before = make_queue(source, tmp_path)
    highest = max(before)
    convert_to(target, tmp_path)
    harness = harness_of(target, tmp_path)
    queue = harness.open()
    assert Mail(harness, queue).put(2, 100) >> 32 > highest >> 32
    taken = {area: harness.wait(queue.take(area, 1000, NOW + 10_000_000, None)) for area in Area}
    handed_out = {(message.spool_id, entry.number) for area in Area for message in taken[area] for entry in message.entries}
    assert handed_out >= {(spool_id, number) for spool_id, (_, entries, _) in before.items() for number in entries}
    stop(harness, queue)


def test_a_way_round_through_all_of_them(tmp_path: Path) -> None:
    before = make_queue(KINDS[0], tmp_path)
    for kind in (*KINDS[1:], KINDS[0]):
        convert_to(kind, tmp_path)
        assert look(kind, tmp_path) == before
        forget_old(PosixDisk(), str(tmp_path / "queue"))
        assert not (tmp_path / "queue" / "conversion").exists()
        assert not (tmp_path / "spool" / "conversion").exists()
        report = PROVIDERS.named(kind.provider).check(settings_of(kind, tmp_path), NOW)
        assert [finding.kind for finding in report] == []


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_empty_queue_stays_empty_and_keeps_its_epoch(kind: QueueKind, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    harness = harness_of(KINDS[0], tmp_path)
    queue = harness.open()
    mail = Mail(harness, queue)
    gone = mail.put()
    mail.end(gone, 1)
    stop(harness, queue)
    convert_to(kind, tmp_path)
    assert look(kind, tmp_path) == {}
    harness = harness_of(kind, tmp_path)
    queue = harness.open()
    assert Mail(harness, queue).put() >> 32 > gone >> 32
    stop(harness, queue)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_belongs_to_the_directory_stays(kind: QueueKind, tmp_path: Path) -> None:
    make_queue(KINDS[0], tmp_path)
    (tmp_path / "queue" / "corrupt" / "kept").write_text("damaged bytes")
    (tmp_path / "queue" / "state" / "hosts").write_text("what is known")
    convert_to(kind, tmp_path)
    assert (tmp_path / "queue" / "corrupt" / "kept").read_text() == "damaged bytes"
    assert (tmp_path / "queue" / "state" / "hosts").read_text() == "what is known"
