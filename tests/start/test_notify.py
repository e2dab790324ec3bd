"""The service manager is told, on a socket of the test's own."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from twisted.internet.task import Clock

from mailismus.start.notify import Notifier


class Manager:
    """Stands for systemd."""

    def __init__(self, path: Path | None) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(str(path) if path is not None else "")
        name = self.socket.getsockname()
        self.address = name if isinstance(name, str) else "@" + name[1:].decode()

    def heard(self) -> list[list[str]]:
        found = []
        while True:
            try:
                found.append(self.socket.recv(4096).decode().split("\n"))
            except BlockingIOError:
                return found


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    made = Manager(tmp_path / "notify" if request.param == "path" else None)
    yield made
    made.socket.close()


def test_ready_is_told_with_a_status(manager: Manager) -> None:
    Notifier(Clock(), {"NOTIFY_SOCKET": manager.address}, lambda: 7).ready("SMTP=127.0.0.1:25")
    assert manager.heard() == [["READY=1", "STATUS=SMTP=127.0.0.1:25", "MAINPID=7"]]


def test_the_watchdog_is_fed_three_times_a_period_until_the_end(manager: Manager) -> None:
    clock = Clock()
    environment = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "7"}
    notifier = Notifier(clock, environment, lambda: 7, lambda: "3 entries\nREADY=0")
    notifier.ready("up")
    manager.heard()
    clock.pump([0.5] * 6)
    assert manager.heard() == [["WATCHDOG=1", "STATUS=3 entries READY=0"]] * 3
    notifier.stopping()
    assert manager.heard() == [["STOPPING=1", "STATUS=stopping"]]
    clock.advance(1)
    assert len(manager.heard()) == 1
    notifier.close()
    clock.advance(10)
    assert manager.heard() == []
    assert not clock.calls


@pytest.mark.parametrize("usec", ["", "0", "x", "-1", "٣"])
def test_without_a_period_nothing_is_fed(manager: Manager, usec: str) -> None:
    clock = Clock()
    notifier = Notifier(clock, {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": usec}, lambda: 7)
    notifier.ready("up")
    assert notifier.period_s is None
    assert not clock.calls


def test_the_watchdog_of_another_process_is_not_ours(manager: Manager) -> None:
    environment = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "8"}
    assert Notifier(Clock(), environment, lambda: 7).period_s is None


@pytest.mark.parametrize("address", ["", "@", "relative/path", "vsock:2:1"])
def test_without_an_address_nothing_happens(address: str) -> None:
    clock = Clock()
    notifier = Notifier(clock, {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "3000000"}, lambda: 7)
    notifier.ready("up")
    notifier.stopping()
    assert not clock.calls


def test_a_manager_that_is_gone_hurts_nobody(tmp_path: Path) -> None:
    notifier = Notifier(Clock(), {"NOTIFY_SOCKET": str(tmp_path / "none")}, lambda: 7)
    notifier.ready("up")
    notifier.reloading(1.5)
    notifier.stopping()
