"""The pickup: each dropped message comes into the queue once, and what can't is put aside or waits."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.config.values.settings import SendmailSettings
from mailismus.mail.injected import Injected
from mailismus.sendmail.drop import drop_message
from mailismus.sendmail.pickup import LOOK_S, REST_S, Pickup
from mailismus.sendmail.places import make_places
from mailismus.sendmail.shelf import Shelf
from mailismus.sendmail.users import ProgramTerms, find_users
from mailismus.smtp import replies
from tests.fakes.worker import MemoryWorker


class Taking:
    """A message on its way into the queue, as the pickup sees it."""

    def __init__(self, desk: Desk, uid: int, on_end: Callable[[Injected], None], on_room: Callable[[], None]) -> None:
        self._desk, self.uid, self.end, self.on_room = desk, uid, on_end, on_room
        self.sender = b""
        self.recipients: tuple[bytes, ...] = ()
        self.data = b""
        self.is_finished = self.is_abandoned = False

    def begin(self, sender: bytes, recipients: Sequence[bytes]) -> bool:
        self.sender, self.recipients = sender, tuple(recipients)
        if self._desk.refuses:
            self.end(Injected(reply=self._desk.refuses))
        return not self._desk.refuses

    def write(self, data: bytes) -> bool:
        self.data += data
        return not self._desk.is_slow

    def finish(self) -> None:
        self.is_finished = True
        if self._desk.answers and not self._desk.refuses:
            self.end(Injected(name="0000000000000001"))

    def abandon(self) -> None:
        self.is_abandoned = True


class Desk:
    """Makes them; `answers`: each is accepted at its end."""

    def __init__(self) -> None:
        self.made: list[Taking] = []
        self.answers = True
        self.is_slow = False
        self.refuses = b""

    def of(self, uid: int) -> Callable[[Callable[[Injected], None], Callable[[], None]], Taking]:
        return partial(self._make, uid)

    def _make(self, uid: int, on_end: Callable[[Injected], None], on_room: Callable[[], None]) -> Taking:
        self.made.append(Taking(self, uid, on_end, on_room))
        return self.made[-1]


class Place:
    """A drop directory, and a pickup over it."""

    def __init__(self, root: Path, deny: tuple[str, ...] = ()) -> None:
        self.root = root
        make_places(str(root))
        self.desk, self.clock = Desk(), Clock()
        self.clock.advance(1_700_000_000.0)
        users = find_users(SendmailSettings(str(root), ("*",), deny, b"x"), 0)
        worker = MemoryWorker(is_prompt=True)
        self.pickup = Pickup(Shelf(str(root)), self.desk.of, ProgramTerms(users, 100_000), worker, self.clock)

    def leave(self, message: bytes = b"body\n") -> str:
        return drop_message(str(self.root), b"s@d", (b"a@b",), io.BytesIO(message), len(message))

    def look(self, seconds: float = LOOK_S) -> None:
        self.clock.advance(seconds)

    def files(self, part: str = "drop") -> list[str]:
        return os.listdir(self.root / part)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "sendmail")


def test_what_lies_there_at_the_start_and_what_comes_later_is_taken(place: Place) -> None:
    place.leave(b"x" * 70_000)
    place.pickup.start()
    place.leave()
    place.look()
    first, second = place.desk.made
    assert (first.uid, first.sender, first.recipients, first.data) == (os.getuid(), b"s@d", (b"a@b",), b"x" * 70_000)
    assert second.data == b"body\n"
    assert place.files() == place.files("aside") == []
    assert place.pickup.taken == 2


def test_the_file_is_there_until_the_message_is_durable(place: Place) -> None:
    place.desk.answers = False
    name = place.leave()
    place.pickup.start()
    place.look()
    (taking,) = place.desk.made
    assert taking.is_finished
    assert place.files() == [name]
    taking.end(Injected(name="0000000000000001"))
    assert place.files() == []


def test_a_queue_without_room_is_waited_for(place: Place) -> None:
    place.desk.is_slow = True
    place.leave(b"x" * 60_000)
    place.pickup.start()
    (taking,) = place.desk.made
    sizes = []
    while not taking.is_finished:
        sizes.append(len(taking.data))
        taking.on_room()
    assert len(set(sizes)) == len(sizes) == 3
    assert place.files() == []


def test_a_message_that_ends_while_it_waits_for_room_holds_up_nothing(place: Place) -> None:
    place.desk.is_slow = True
    place.leave(b"x" * 60_000)
    place.pickup.start()
    place.desk.made[0].end(Injected(reply=replies.STORAGE_TROUBLE))
    assert place.desk.made[0].is_abandoned
    assert len(place.files()) == 1


def test_a_message_that_waits_is_tried_again_later(place: Place) -> None:
    place.desk.refuses = replies.STORAGE_FULL
    place.leave()
    place.leave()
    place.pickup.start()
    place.look()
    assert len(place.desk.made) == 1
    assert len(place.files()) == 2
    place.desk.refuses = b""
    place.look(REST_S)
    place.look()
    assert place.files() == place.files("aside") == []


@pytest.mark.parametrize("reply", [replies.TOO_LARGE, replies.BARE_BYTES, replies.LOOP, replies.TOO_MANY_RECIPIENTS])
def test_what_is_refused_for_good_is_put_aside_and_stops_no_other(place: Place, reply: bytes) -> None:
    place.desk.refuses = reply
    place.leave()
    place.pickup.start()
    place.desk.refuses = b""
    place.leave()
    place.look()
    assert place.files() == []
    assert len(place.files("aside")) == place.pickup.aside == place.pickup.taken == 1


def test_messages_of_denied_users_and_damaged_ones_are_put_aside(tmp_path: Path) -> None:
    place = Place(tmp_path / "sendmail", (str(os.getuid()),))
    place.leave()
    (tmp_path / "sendmail" / "drop" / "1").write_bytes(b"mailismus-drop 1 5 5\n")
    (tmp_path / "sendmail" / "drop" / "2").mkdir()
    place.pickup.start()
    assert place.desk.made == []
    assert place.files() == []
    assert len(place.files("aside")) == 2
    assert place.pickup.aside == 3


def test_a_file_that_stays_is_not_taken_twice(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Shelf, name: str) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Shelf, "remove", fail)
    place.leave()
    place.pickup.start()
    place.look()
    place.look()
    assert place.pickup.taken == 1
    assert len(place.files()) == 1


def test_a_file_that_cannot_be_moved_stops_no_other(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Shelf, name: str, why: str) -> None:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(Shelf, "put_aside", fail)
    (place.root / "drop" / "1").write_bytes(b"")
    (place.root / "drop" / ".2").mkdir()
    os.utime(place.root / "drop" / ".2", (0, 0))
    place.leave()
    place.pickup.start()
    place.look()
    assert place.pickup.taken == 1
    assert sorted(place.files()) == [".2", "1"]


def test_a_disk_that_fails_is_asked_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Shelf, left_out: set[str]) -> list[str]:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(Shelf, "waiting", fail)
        place.leave()
        place.pickup.start()
    place.look(REST_S)
    place.look()
    assert place.pickup.taken == 1


def test_a_stop_waits_for_the_message_under_way_and_begins_no_other(place: Place) -> None:
    place.desk.answers = False
    place.leave()
    place.leave()
    place.pickup.start()
    ended = Deferred.fromCoroutine(place.pickup.stop())
    assert not ended.called
    place.desk.made[0].end(Injected(name="0000000000000001"))
    assert ended.called
    assert len(place.desk.made) == len(place.files()) == 1
