"""The watch over files of refused secrets: what is looked at, when, and what is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from twisted.internet.task import Clock

from mailismus.config.values.auth import AuthSettings
from mailismus.deliver.authentication.renewal import KEPT_S, LOOK_S, PAUSE_S, SecretWatch
from mailismus.deliver.authentication.secrets import Secrets
from mailismus.deliver.security.profile import PLAIN, Profile
from mailismus.secret_file import version_of
from tests.fakes.worker import MemoryWorker


class Desk:
    """A watch, the file of one profile, and what was told."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "relay.secret"
        self.path.write_bytes(b"old\n")
        self.clock, self.worker = Clock(), MemoryWorker(is_prompt=True)
        self.told: list[Profile] = []
        self.watch = SecretWatch(Secrets(self.worker), self.clock, self.told.append)
        self.profile = Profile(PLAIN.requirement, AuthSettings(("PLAIN",), "joe", None, None))

    def refuse(self) -> None:
        self.watch.watch(self.profile, str(self.path), version_of(str(self.path)))

    def write(self, text: bytes) -> None:
        new = self.path.with_suffix(".new")
        new.write_bytes(text)
        new.rename(self.path)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_new_file_is_told_once(desk: Desk) -> None:
    desk.refuse()
    desk.clock.advance(LOOK_S)
    assert desk.told == []
    desk.write(b"new\n")
    desk.clock.advance(LOOK_S)
    assert desk.told == [desk.profile]
    desk.write(b"newer\n")
    desk.clock.pump([LOOK_S] * 3)
    assert desk.told == [desk.profile]
    assert not desk.clock.getDelayedCalls()


def test_a_file_that_was_missing_is_told_when_it_is_there(desk: Desk) -> None:
    desk.path.unlink()
    desk.refuse()
    desk.clock.advance(LOOK_S)
    assert desk.told == []
    desk.write(b"new\n")
    desk.clock.advance(LOOK_S)
    assert desk.told == [desk.profile]


def test_another_mode_of_a_file_that_could_not_be_used_is_told(desk: Desk) -> None:
    desk.path.chmod(0o644)
    desk.watch.watch(desk.profile, str(desk.path), None)
    desk.clock.advance(LOOK_S)
    assert desk.told == []
    desk.path.chmod(0o600)
    desk.clock.advance(LOOK_S)
    assert desk.told == [desk.profile]


def test_a_file_that_is_gone_is_no_new_secret(desk: Desk) -> None:
    desk.refuse()
    desk.path.unlink()
    desk.clock.advance(LOOK_S)
    assert desk.told == []


@pytest.mark.parametrize("end", ["accepted", "stopped", "late", "no profile"])
def test_the_watch_ends(desk: Desk, end: str) -> None:
    desk.refuse()
    if end == "accepted":
        desk.watch.forget(desk.profile)
    elif end == "stopped":
        desk.watch.stop()
        assert not desk.clock.getDelayedCalls()
    elif end == "late":
        desk.clock.advance(KEPT_S + LOOK_S)
    else:
        del desk.profile
    desk.write(b"new\n")
    desk.clock.advance(LOOK_S)
    assert desk.told == []
    assert not desk.clock.getDelayedCalls()


def test_a_look_that_hangs_is_not_made_twice_and_tells_nothing_of_an_earlier_refusal(desk: Desk) -> None:
    desk.worker.is_prompt = False
    desk.refuse()
    desk.clock.pump([LOOK_S] * 3)
    desk.write(b"new\n")
    desk.refuse()
    desk.worker.is_prompt = True
    desk.worker.work_all()
    assert desk.told == []
    desk.write(b"newer\n")
    desk.clock.advance(LOOK_S)
    assert desk.told == [desk.profile]


def test_a_file_that_is_written_again_and_again_is_told_once_a_minute(desk: Desk) -> None:
    for number in range(1 + int(2 * PAUSE_S / LOOK_S)):
        desk.refuse()
        desk.write(b"%d\n" % number)
        desk.clock.advance(LOOK_S)
    assert len(desk.told) == 3
