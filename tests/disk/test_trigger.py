"""A trigger: pulls are seen, cost nothing when nobody listens, and never wait."""

from __future__ import annotations

import os
import select
from contextlib import suppress
from pathlib import Path

import pytest

from mailismus.disk.trigger import Trigger, pull


def is_readable(trigger: Trigger) -> bool:
    return bool(select.select([trigger], [], [], 0)[0])


def test_a_pull_is_seen_until_it_is_drained(tmp_path: Path) -> None:
    path = str(tmp_path / "trigger")
    assert not pull(path)
    trigger = Trigger(path)
    assert not is_readable(trigger)
    assert pull(path)
    assert pull(path)
    assert is_readable(trigger)
    trigger.drain()
    assert not is_readable(trigger)
    trigger.drain()
    trigger.close()
    trigger.close()
    assert not pull(path)  # nobody has it open
    again = Trigger(path)
    assert pull(path)
    again.remove()
    again.close()
    again.remove()
    assert not pull(path)


def test_a_full_pipe_is_enough(tmp_path: Path) -> None:
    path = str(tmp_path / "trigger")
    trigger = Trigger(path)
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while os.write(fd, b"x" * 4096):
            pass
    assert pull(path)
    os.close(fd)
    trigger.close()


def test_something_else_of_that_name_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "trigger"
    path.write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        Trigger(str(path))
    assert not pull(str(path))
    assert path.read_bytes() == b"mine"
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        Trigger(str(path))
