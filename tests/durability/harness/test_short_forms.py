"""The harnesses in their short form: the program as processes, killed, cut off, traced and filled up.

Each test says why it is skipped where the machine can't do what it needs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from benchmarks.stage.directories import MEMORY_FILE_SYSTEMS, file_system
from benchmarks.stage.providers import SERVED
from tests.durability.harness import full_disk, injectors, kill_loop, mailbox_reader, mailboxes, sync_check
from tests.durability.harness.ability import lacks_power_cuts, lacks_readers, lacks_tracing
from tests.durability.harness.tally import Figures, Record
from tests.durability.subjects.named import SUBJECTS
from tests.support.power import FileSystem


@pytest.fixture
def directory(tmp_path: Path) -> str:
    """On a disk: where barriers cost nothing nothing would be shown."""
    for path in (tmp_path, Path(tempfile.gettempdir()), Path("/var/tmp")):
        if path.is_dir() and file_system(path) not in MEMORY_FILE_SYSTEMS:
            return str(path)
    pytest.skip("no directory for temporary files is on a disk")


def _need(*reasons: str | None) -> None:
    for reason in reasons:
        if reason is not None:
            pytest.skip(reason)


def _rounds(directory: str, *more: str) -> Figures:
    argv = ["--directory", directory, "--rate", "200", "--longest", "0.5", "--least", "20", "--disk-mb", "1000", *more]
    record = Record(None, {})
    kill_loop.run(kill_loop.arguments().parse_args(argv), record)
    return record.total()


def _is_whole(total: Figures) -> bool:
    """All but how much was doubled: that takes a machine that keeps time."""
    nothing = (total.lost, total.wrong, total.torn, total.left, total.corrupt_files, total.stray_files, total.complaints)
    return total.messages > 0 and not any(nothing)


def test_kills_lose_nothing(directory: str) -> None:
    total = _rounds(directory, "--kills", "2", "--stops", "0", "--next-hop", "flaky")
    assert total.kills == 2
    assert _is_whole(total)


@pytest.mark.parametrize("provider", ["clustered", "log", "chunk"])
def test_acts_that_kills_cut_off_lose_nothing_and_can_be_undone(directory: str, provider: str) -> None:
    total = _rounds(directory, "--kills", "1", "--stops", "1", "--next-hop", "flaky", "--acts", "--provider", provider)
    assert total.kills == 1
    assert _is_whole(total)
    assert total.bad_rounds == 0
    assert total.acts > 0


def test_clean_stops_lose_and_double_nothing(directory: str) -> None:
    total = _rounds(directory, "--kills", "0", "--stops", "1", "--next-hop", "up")
    assert (total.kills, total.stops) == (0, 1)
    assert _is_whole(total)
    assert total.doubled == 0


def test_power_cuts_lose_nothing(directory: str) -> None:
    _need(lacks_power_cuts(FileSystem.EXT4))
    total = _rounds(
        directory, "--kills", "2", "--stops", "0", "--next-hop", "down", "--hardlinks", "Y", "--power-cut", "ext4"
    )
    assert total.kills == 2
    assert _is_whole(total)


def test_a_server_whose_barriers_do_nothing_is_seen_to_lose_mail(directory: str) -> None:
    _need(lacks_power_cuts(FileSystem.EXT4), lacks_tracing())
    more = ("--kills", "1", "--stops", "0", "--next-hop", "down", "--power-cut", "ext4", "--no-barriers")
    total = _rounds(directory, *more)
    assert total.left == 0
    assert total.lost > 0


@pytest.mark.parametrize("provider", ["clustered", "chunk"])
def test_no_250_is_sent_before_its_barrier_has_returned(directory: str, provider: str) -> None:
    _need(lacks_tracing())
    argv = ["--provider", provider, "--directory", directory, "--messages", "200", "--rate", "400"]
    findings = sync_check.run(sync_check.arguments().parse_args(argv), "varied")
    assert findings.breaches == []
    assert findings.answers == 200
    assert findings.total_barriers > 0


def test_the_naive_provider_answers_before_a_name_is_durable(directory: str) -> None:
    """The same check of the same program fails where a provider forgets a barrier."""
    _need(lacks_tracing())
    argv = ["--provider", "naive", "--directory", directory, "--messages", "100", "--rate", "200"]
    findings = sync_check.run(sync_check.arguments().parse_args(argv), "small")
    assert findings.answers == 100
    assert len(findings.breaches) == 100
    assert all(breach.endswith(".mail is not durable") for breach in findings.breaches)


def test_harnesses_and_proofs_know_the_same_providers() -> None:
    assert list(SERVED) == list(SUBJECTS)


_WAYS = ((), ("--power-cut",), ("--no-server",), ("--sendmail", "--calm"), ("--sendmail", "--no-server"))


@pytest.mark.parametrize("more", [*_WAYS, ("--sendmail", "--power-cut")], ids=" ".join)
def test_programs_beside_the_server_lose_and_tear_nothing(directory: str, more: tuple[str, ...]) -> None:
    _need(lacks_power_cuts(FileSystem.EXT4))
    argv = ["--directory", directory, "--seconds", "1.5" if more else "3", "--file-system", "ext4", *more]
    shown = injectors.run_on(FileSystem.EXT4, injectors.arguments().parse_args(argv))
    assert shown.is_good, injectors.describe(FileSystem.EXT4, shown)


@pytest.mark.parametrize(
    ("provider", "filling"), [("clustered", full_disk.Filling.OTHERS), ("chunk", full_disk.Filling.INODES)], ids=str
)
def test_a_disk_that_fills_up_refuses_mail_until_there_is_room_and_loses_none(
    directory: str, provider: str, filling: full_disk.Filling
) -> None:
    _need(lacks_power_cuts(FileSystem.EXT4))
    argv = ["--provider", provider, "--directory", directory, "--full", "0.5", "--again", "50"]
    shown = full_disk.run(full_disk.arguments().parse_args(argv), filling)
    assert shown.good


def test_what_the_log_calls_sent_lies_in_its_maildir_after_power_cuts(directory: str) -> None:
    _need(lacks_power_cuts(FileSystem.EXT4))
    argv = ["--directory", directory, "--kills", "2", "--longest", "0.5", "--disk-mb", "1000", "--power-cut", "ext4"]
    figures = mailboxes.run(mailboxes.arguments().parse_args(argv))
    assert figures.good
    assert figures.sent > 0


def test_of_maildirs_whose_syncs_do_nothing_it_is_seen(directory: str) -> None:
    _need(lacks_power_cuts(FileSystem.EXT4), lacks_tracing())
    argv = ["--directory", directory, "--kills", "1", "--disk-mb", "1000", "--power-cut", "ext4", "--no-barriers"]
    assert mailboxes.run(mailboxes.arguments().parse_args(argv)).missing > 0


def test_a_reader_at_work_sees_each_message_once() -> None:
    """In a directory that its user gets into: those of tests are open to us alone."""
    place = mailbox_reader.arguments().get_default("directory")
    _need(lacks_readers(), f"{place} is in memory" if file_system(place) in MEMORY_FILE_SYSTEMS else None)
    figures = mailbox_reader.run(mailbox_reader.arguments().parse_args(["--seconds", "2"]))
    assert figures.good
    assert figures.accepted > 0
