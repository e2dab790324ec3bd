"""Every call of the disk fails in turn: a delivery that succeeded is durable, one that failed left nothing half."""

from __future__ import annotations

import errno
import os

import pytest

from mailismus.chunks.generator import NameGenerator
from mailismus.maildir.boots import BootSequence
from mailismus.maildir.delivery import begin_delivery
from mailismus.maildir.names import strategy_of
from mailismus.maildir.store import MaildirStore
from tests.fakes.disk import MemoryDisk

NOW = 1_700_000_000.25
ROOT = "/home/ms"
WHOLE = b"Head: x\nHello\n"
ERRNOS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EMFILE)


class Box:
    """A disk on which a call fails, and deliveries."""

    def __init__(self, *, has_quota: bool, is_counted: bool, is_first: bool) -> None:
        self.disk = MemoryDisk()
        self._is_counted, self._has_quota = is_counted, has_quota
        self._number = 0
        if not is_first:
            self.deliver()
        elif is_counted:
            self.disk.make_directory("/home")
            self.disk.make_directory(ROOT)
        if has_quota:
            if is_first:
                self._store().open(ROOT, b"joe", "Maildir").close()
            file = self.disk.create(f"{ROOT}/joe/Maildir/maildirsize")
            file.write_at(0, (b"100000S\n",))
            file.sync()
            file.close()
        self.calls = 0
        self.failed = ""

    def _store(self) -> MaildirStore:
        self._number += 1
        generator = NameGenerator(lambda: self._number)
        if self._is_counted:
            generator.use_boot_counter(BootSequence(self.disk, ROOT, b"aa").next)
        return MaildirStore(self.disk, strategy_of("#X" if self._is_counted else "MPQ", b"mx"), generator)

    def deliver(self) -> None:
        delivery = begin_delivery(self._store(), ROOT, b"joe", "Maildir", NOW, b"Head: x\n", lambda: 0.0)
        try:
            delivery.write(b"Hello\r\n")
            delivery.finish()
        finally:
            delivery.abandon()

    def try_to_deliver(self) -> bool:
        """Whether it says that it delivered."""
        try:
            self.deliver()
        except OSError:
            return False
        return True

    def fail(self, at: int, number: int, *, is_for_good: bool) -> None:
        """Let the call of this number fail; or all from it on."""

        def fault(act: str, path: str) -> OSError | None:
            self.calls += 1
            if self.calls == at or (is_for_good and self.calls > at):
                self.failed = self.failed or f"{act} {path}"
                return OSError(number, os.strerror(number))
            return None

        self.disk.fault = fault

    def in_new(self) -> list[bytes]:
        return [bytes(inode.data) for path, inode in self.disk.names.items() if "/new/" in path]

    def in_tmp(self) -> list[str]:
        return [path for path in self.disk.names if "/tmp/" in path]


@pytest.mark.parametrize("is_for_good", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("number", ERRNOS, ids=os.strerror)
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
@pytest.mark.parametrize("kind", ["plain", "quota", "counted"])
def test_no_failing_call_breaks_a_promise(kind: str, number: int, *, is_first: bool, is_for_good: bool) -> None:
    at = failures = 0
    while True:
        at += 1
        box = Box(has_quota=kind == "quota", is_counted=kind == "counted", is_first=is_first)
        before = box.in_new()
        box.fail(at, number, is_for_good=is_for_good)
        was_told = box.try_to_deliver()
        failures += not was_told
        box.disk.fault = None
        if not box.failed:
            assert was_told
            break
        found = box.in_new()
        if was_told:
            assert found == [*before, WHOLE], box.failed
        else:
            is_last_sync = box.failed.startswith("sync directory") and box.failed.endswith("/new")
            assert found == before or (is_last_sync and found == [*before, WHOLE]), box.failed
        if not is_for_good and not box.failed.startswith("unlink"):
            assert box.in_tmp() == [], box.failed
        box.deliver()
        box.disk.power_cut()
        after = box.in_new()
        assert set(after) == {WHOLE}
        assert len(after) >= len(before) + 1 + was_told, box.failed
    assert failures > 5
