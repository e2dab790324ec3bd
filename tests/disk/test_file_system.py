"""A barrier over a whole file system is offered only where its answer can be trusted, and tells of every failure."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

import pytest

from mailismus.disk import file_system
from mailismus.disk.file_system import is_trusted_kernel, open_trusted
from mailismus.disk.posix import PosixDisk

EXT4, XFS, OVERLAY = 0xEF53, 0x58465342, 0x794C7630


class Library:
    """libc: a file system of this kind, whose syncs answer so, one after the other (0: done)."""

    def __init__(self, kind: int = EXT4, answers: tuple[int, ...] = ()) -> None:
        self.kind, self.answers = kind, list(answers)

    def fstatfs(self, fd: int, answer: object) -> int:
        found = ctypes.cast(answer, ctypes.POINTER(ctypes.c_ulong))  # type: ignore[arg-type]  # what byref gives
        found[0] = self.kind
        return 0

    def syncfs(self, fd: int) -> int:
        os.fstat(fd)
        ctypes.set_errno(number := self.answers.pop(0))
        return -1 if number else 0


@pytest.mark.parametrize(
    ("release", "expected"),
    [("5.16.9", False), ("5.17.0-rc1", True), ("6.1.0-18-amd64", True), ("4.19", False), ("10.2", True), ("", False)],
)
def test_kernels_that_may_keep_a_failure_back_are_known(release: str, expected: bool) -> None:
    assert is_trusted_kernel(release) is expected


@pytest.mark.parametrize(("kind", "expected"), [(EXT4, True), (XFS, True), (OVERLAY, False)])
def test_only_what_was_tried_is_trusted(kind: int, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_system, "_libc", Library(kind))
    before = len(os.listdir("/proc/self/fd"))
    found = open_trusted([str(tmp_path)])
    assert (found is not None) is expected
    if found is not None:
        found.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_kernel_that_may_keep_failures_back_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_system, "_libc", Library())
    monkeypatch.setattr(file_system, "LEAST_KERNEL", (99, 0))
    assert open_trusted([str(tmp_path)]) is None


def test_directories_of_several_file_systems_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_system, "_libc", Library())
    assert os.stat("/proc").st_dev != tmp_path.stat().st_dev
    assert open_trusted([str(tmp_path), "/proc"]) is None


def test_a_failure_is_told_and_a_signal_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(answers=(errno.EINTR, 0, errno.EIO))
    monkeypatch.setattr(file_system, "_libc", library)
    whole = PosixDisk().open_file_system([str(tmp_path)])
    assert whole is not None
    whole.sync()
    assert library.answers == [errno.EIO]
    with pytest.raises(OSError, match="Input/output error"):
        whole.sync()
    whole.close()
    whole.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        whole.sync()


def test_done_of_a_file_system_that_became_read_only_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_system, "_libc", Library(answers=(0, 0)))
    whole = open_trusted([str(tmp_path)])
    assert whole is not None
    found = os.statvfs(tmp_path)
    fields = list(found)
    fields[8] = found.f_flag | os.ST_RDONLY
    monkeypatch.setattr(os, "fstatvfs", lambda fd: os.statvfs_result(fields))
    with pytest.raises(OSError, match="Read-only file system"):
        whole.sync()
    with pytest.raises(OSError, match="Read-only file system"):
        PosixDisk().sync_file_system(str(tmp_path))
    whole.close()


def test_names_are_not_durable_on_a_file_system_that_has_shut_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = PosixDisk()
    directory = disk.open_directory(str(tmp_path))

    def fail(fd: int) -> os.stat_result:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fstat", fail)
    for sync in (directory.sync, lambda: disk.sync_directory(str(tmp_path))):
        with pytest.raises(OSError, match="Input/output error"):
            sync()
    monkeypatch.undo()
    directory.close()
