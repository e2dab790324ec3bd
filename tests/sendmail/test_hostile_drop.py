"""The drop directory with a user in it who wants to harm the server, or the mail of others."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import signal
import tracemalloc
from pathlib import Path

import pytest
from twisted.logger import capturedLogs

from mailismus.errors import StartError
from mailismus.mail.injected import Injected
from mailismus.sendmail.drop import drop_message
from mailismus.sendmail.drop_format import MOST_ENVELOPE_BYTES, BadDrop, encode_end
from mailismus.sendmail.pickup import LOOK_S, REST_S, REST_SHARE
from mailismus.sendmail.shelf import MOST_LOOKED, MOST_NAMES, Shelf
from mailismus.smtp import replies
from tests.sendmail.test_pickup import Place

MALLORY = 65_533
"""The owner of the files whose names begin with `!`."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "sendmail")


@pytest.fixture(autouse=True)
def owners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shelf, "_owner", lambda shelf, name: MALLORY if name.startswith("!") else os.getuid())


def whole(envelope: bytes, message: bytes = b"x\n") -> bytes:
    """A file with a right size and digest around this envelope."""
    data = b"mailismus-drop 1 %d %d\n" % (len(envelope), len(message)) + envelope + message
    return data + encode_end(hashlib.sha256(data).digest())


def put(place: Place, name: str, data: bytes) -> Path:
    path = place.root / "drop" / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("size_bytes", [MOST_ENVELOPE_BYTES, 16 << 20])
def test_an_envelope_of_many_small_things_fills_no_memory(place: Place, size_bytes: int) -> None:
    begin, end = b'{"sender": "", "recipients": ["a@b"], "x": [1', b"]}"
    envelope = begin + b",[]" * ((size_bytes - len(begin) - len(end)) // 3) + end
    put(place, "1", whole(envelope))
    tracemalloc.start()
    try:
        place.pickup.start()
        most_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most_bytes < 100 << 20
    assert place.files() == []


@pytest.mark.parametrize("recipients", [b'"ab"', b'{"a@b": 1}', b"[" + b'"a@b", ' * 60_000 + b'"a@b"]', b"[1]", b"null"])
def test_recipients_that_are_no_list_or_too_many_reach_no_engine(place: Place, recipients: bytes) -> None:
    put(place, "1", whole(b'{"sender": "", "recipients": %b}' % recipients))
    place.pickup.start()
    assert place.desk.made == []
    assert len(place.files("aside")) == 1


def test_the_command_refuses_addresses_that_the_server_would_put_aside(place: Place) -> None:
    with pytest.raises(StartError, match="too long") as caught:
        drop_message(str(place.root), b"", (b"\xff" * MOST_ENVELOPE_BYTES,), io.BytesIO(b"x"), 1)
    assert caught.value.status == os.EX_DATAERR
    assert place.files() == []


def test_users_take_turns_whatever_their_files_are_called(place: Place) -> None:
    for number in range(MOST_NAMES + 5):
        put(place, f"!{number:05}", b"")
    mine = place.leave()
    names = [one.name for one in Shelf(str(place.root)).waiting(set())]
    assert len(names) == MOST_NAMES
    assert mine in names[:2]


def test_very_many_files_are_not_all_asked_for_at_each_look(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    there = [f"{dot}{number}" for number in range(MOST_LOOKED + 500) for dot in ("", ".")]
    asked: list[str] = []

    def path_of(shelf: Shelf, name: str) -> str:
        asked.append(name)
        return str(place.root / name)

    monkeypatch.undo()
    monkeypatch.setattr(os, "listdir", lambda path: there)
    monkeypatch.setattr(Shelf, "_path", path_of)
    shelf = Shelf(str(place.root))
    shelf.waiting(set())
    assert len(asked) == MOST_LOOKED
    first = set(asked)
    shelf.waiting(set())
    assert set(asked) > first
    asked.clear()
    shelf.put_half_aside(0.0)
    assert len(asked) == MOST_LOOKED


def test_a_look_that_took_long_is_followed_by_a_longer_rest(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    def find(shelf: Shelf, left_out: set[str]) -> list[str]:
        looks.append(place.clock.seconds())
        place.clock.rightNow += 0.5
        return []

    monkeypatch.setattr(Shelf, "waiting", find)
    place.pickup.start()
    for _ in range(4):
        place.look()
    assert len(looks) == 1
    for _ in range(int(0.5 * REST_SHARE)):
        place.look()
    assert len(looks) == 2


def test_a_user_whose_message_has_to_wait_holds_up_no_other(place: Place) -> None:
    for number in range(2):
        os.rename(place.root / "drop" / place.leave(b"hers\n"), place.root / "drop" / f"!{number}")
    place.desk.answers = False
    place.leave(b"mine\n")
    place.pickup.start()
    place.desk.made[0].end(Injected(reply=replies.STORAGE_FULL))
    place.desk.made[1].end(Injected(name="0000000000000001"))
    place.look()
    assert [taking.data for taking in place.desk.made] == [b"hers\n", b"mine\n"]
    assert place.pickup.taken == 1
    assert sorted(place.files()) == ["!0", "!1"]
    place.look(REST_S)
    assert len(place.desk.made) == 3


def test_a_file_that_its_owner_leases_holds_up_no_other(place: Place) -> None:
    path = put(place, "!", b"x")
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        place.leave()
        place.pickup.start()
        assert place.pickup.taken == 1
        assert place.files() == ["!"]
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, before)


def test_names_forge_no_lines_of_the_log(place: Place) -> None:
    put(place, "1\n2026-11-23 [mail] \x1b]0;x\x07\udcff", b"")
    with capturedLogs() as events:
        place.pickup.start()
    assert [event["name"] for event in events if "name" in event] == ["1\\x0a2026-11-23 [mail] \\x1b]0;x\\x07\\xff"]


@pytest.mark.parametrize(
    "name",
    ["\N{PILE OF POO}" * 63, "." + "\N{PILE OF POO}" * 63, "x" * 255, "\udcff" * 255],
    ids=["wide", "dot", "x", "bytes"],
)
def test_long_names_are_put_aside_too(place: Place, name: str) -> None:
    os.utime(put(place, name, b""), (0, 0))
    place.pickup.start()
    assert place.files() == []
    assert len(place.files("aside")) == 1


def test_a_message_is_removed_whatever_lies_beside_it_under_a_name_with_a_dot(place: Place) -> None:
    for number, name in enumerate(("1", "x" * 255)):
        os.rename(place.root / "drop" / place.leave(), place.root / "drop" / name)
        if not number:
            (place.root / "drop" / ".1").mkdir()
    place.pickup.start()
    assert place.pickup.taken == 2
    assert place.files() == [".1"]


def test_names_that_stay_are_forgotten_when_they_are_gone(place: Place) -> None:
    shelf, left_out = Shelf(str(place.root)), {"gone", "there"}
    put(place, "there", b"")
    assert shelf.waiting(left_out) == []
    assert left_out == {"there"}


def test_a_file_that_grows_or_changes_behind_its_digest_ends_where_it_said(place: Place) -> None:
    name = place.leave(b"abc\n")
    opened = Shelf(str(place.root)).open(name, 0)
    assert opened is not None
    with (place.root / "drop" / name).open("ab") as file:
        file.write(b"z" * 100_000)
    assert b"".join(iter(lambda: opened.read(70_000), b"")) == b"abc\n"
    opened.close()


def test_a_sparse_file_beyond_the_limit_is_not_read(place: Place) -> None:
    path = put(place, "1", b"mailismus-drop 1 10 999999999999\n")
    os.truncate(path, 1 << 40)
    with pytest.raises(BadDrop, match="are the limit"):
        Shelf(str(place.root)).open("1", 1 << 20)
    place.pickup.start()
    assert place.files() == []
    place.look(LOOK_S)
