"""Each breach of the order is seen in a trace, and nothing else is."""

from __future__ import annotations

import pytest

from tests.durability.harness.order import FileOrder, Findings, Order
from tests.durability.harness.trace import Event, Phase

J, FILE, SILO = "/q/journal/1.mqj", "/s/01/0000000200000001.msg", "/s/01"
SPOOL_ID = 0x200000001


def _begin(name: str, arguments: str) -> Event:
    return Event(Phase.BEGIN, 1.0, name, arguments)


def _end(name: str, arguments: str, result: int = 0, made: str = "") -> Event:
    return Event(Phase.END, 1.0, name, arguments, result, made)


def _call(name: str, arguments: str, result: int = 0, made: str = "") -> list[Event]:
    return [_begin(name, arguments), _end(name, arguments, result, made)]


def _record(kind: str, spool_id: int = SPOOL_ID) -> str:
    octets = "".join(f"\\{byte:03o}" for byte in spool_id.to_bytes(8, "little"))
    return f'3<{J}>, [{{iov_base="MQJB", iov_len=36}}, {{iov_base="{kind}i\\0\\0{octets}", iov_len=12}}], 2, 4096, 0'


def _batch(kind: str = "M", spool_id: int = SPOOL_ID) -> list[Event]:
    return _call("pwritev2", _record(kind, spool_id), 4096)


def _sync(path: str, name: str = "fdatasync", descriptor: int = 3) -> list[Event]:
    return _call(name, f"{descriptor}<{path}>")


def _answer(spool_id: int = SPOOL_ID) -> list[Event]:
    return _call("sendto", f'9<socket:[7]>, "250 2.0.0 Ok: queued as {spool_id:016X}\\r\\n", 42, 0, NULL, 0', 42)


def _file() -> list[Event]:
    made = _call("openat", f'AT_FDCWD</>, "{FILE}", O_RDWR|O_CREAT|O_EXCL, 0600', 5, FILE)
    return [*made, *_call("pwritev2", f'5<{FILE}>, [{{iov_base="x", iov_len=1}}], 1, 0, 0', 1)]


def _judge(*parts: list[Event]) -> Findings:
    return Order().feed(event for part in parts for event in part)


GOOD = (_file(), _sync(FILE), _sync(SILO, "fsync"), _batch("F"), _sync(J), _answer())


def test_a_250_behind_its_barrier_is_well() -> None:
    found = _judge(_batch(), _sync(J), _answer())
    assert (found.breaches, found.answers, found.batches, found.barriers) == ([], 1, 1, {"fdatasync": 1})


def test_a_250_whose_barrier_has_begun_and_not_returned_is_a_breach() -> None:
    begins, ends = _sync(J)
    (breach,) = _judge(_batch(), [begins], _answer(), [ends]).breaches
    assert "0000000200000001" in breach
    assert "no barrier" in breach


def test_a_barrier_that_began_before_the_write_was_done_covers_nothing() -> None:
    begins, ends = _sync(J)
    assert _judge([begins], _batch(), [ends], _answer()).breaches


@pytest.mark.parametrize("other", [_sync("/q/journal/2.mqj"), _call("fdatasync", f"3<{J}>", -1), []])
def test_a_barrier_over_another_file_or_one_that_failed_covers_nothing(other: list[Event]) -> None:
    assert _judge(_batch(), other, _answer()).breaches


def test_a_250_for_what_is_in_no_batch_is_a_breach() -> None:
    (breach,) = _judge(_batch(spool_id=SPOOL_ID + 1), _sync(J), _answer()).breaches
    assert "in no batch" in breach


def test_a_write_that_is_its_own_barrier_and_one_over_all_files_count() -> None:
    assert not _judge(_call("pwritev2", _record("M").replace("4096, 0", "4096, RWF_DSYNC"), 4096), _answer()).breaches
    found = _judge(_batch(), _sync("/q", "syncfs"), _answer())
    assert (found.breaches, found.barriers) == ([], {"syncfs": 1})


def test_a_message_file_is_durable_before_a_batch_speaks_of_it() -> None:
    found = _judge(*GOOD)
    assert not found.breaches
    assert _judge(_batch(), _sync(J), *GOOD).created == {".msg": 1}


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_batch_that_speaks_of_a_file_without_content_or_name_on_disk_is_a_breach(missing: int) -> None:
    (breach,) = _judge(*(part for index, part in enumerate(GOOD) if index != missing)).breaches
    assert "a batch speaks of 0000000200000001" in breach


def test_a_name_given_after_the_directorys_barrier_is_not_durable() -> None:
    link = _call("linkat", f'AT_FDCWD</>, "{FILE}", AT_FDCWD</>, "/s/01/0000000200000001-1.msg", 0')
    assert _judge(_file(), _sync(FILE), _sync(SILO, "fsync"), link, _batch("F")).breaches
    assert not _judge(_file(), _sync(FILE), link, _sync(SILO, "fsync"), _batch("F")).breaches
    removed = _call("unlink", f'"{FILE}"')
    assert not _judge(_file(), _sync(FILE), link, _sync(SILO, "fsync"), removed, _batch("F")).breaches


MAIL, NEW = "/q/0000000200000001.mail", "/q/0000000200000001.tmp"
NEW_FILE = [
    *_call("openat", f'AT_FDCWD</>, "{NEW}", O_RDWR|O_CREAT|O_EXCL, 0600', 5, NEW),
    *_call("pwritev2", f'5<{NEW}>, [{{iov_base="x", iov_len=1}}], 1, 0, 0', 1),
]
RENAMED = _call("rename", f'"{NEW}", "{MAIL}"')


def _judge_files(*parts: list[Event]) -> Findings:
    return FileOrder().feed(event for part in parts for event in part)


def test_a_250_behind_the_barriers_of_a_file_and_its_name_is_well() -> None:
    found = _judge_files(NEW_FILE, _sync(NEW), RENAMED, _sync("/q", "fsync"), _answer())
    assert (found.breaches, found.answers, found.created) == ([], 1, {".tmp": 1})


@pytest.mark.parametrize(
    ("parts", "breach"),
    [
        ([], "it has no file"),
        ([NEW_FILE, RENAMED], "its file 0000000200000001.mail is not durable"),
        ([NEW_FILE, _sync(NEW), RENAMED], "its name 0000000200000001.mail is not durable"),
        ([NEW_FILE, _sync(NEW), _sync("/q", "fsync"), RENAMED], "its name 0000000200000001.mail is not durable"),
    ],
)
def test_a_250_before_the_barriers_of_a_file_is_a_breach(parts: list[list[Event]], breach: str) -> None:
    (found,) = _judge_files(*parts, _answer()).breaches
    assert found.endswith(breach)
