"""A loop-mounted file system whose power can be cut (root, Linux; ext4 or XFS).

The shutdown call of both (FS_IOC_SHUTDOWN without writing their log) makes every later write and barrier fail and lets
nothing more reach the image: what was not made durable before is gone after the remount, as after a power cut. That
tests barriers, not the disk's own honesty. The processes that use it must have ended before it can be mounted again.

Rules: the loop device goes with the mount (`mount -o loop` lets it go by itself), so that a mount is all that can be left.
"""

from __future__ import annotations

import enum
import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tests.support.processes import TrialError

FS_IOC_SHUTDOWN = (2 << 30) | (4 << 16) | (ord("X") << 8) | 125  # _IOR('X', 125, __u32)
NO_LOG_FLUSH = 2
ENVIRONMENT = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin", "LC_ALL": "C"}
PATIENCE_S, PAUSE_S = 5.0, 0.05
"""How long, and how often, a busy mount is tried again."""


class FileSystem(enum.Enum):
    """What is made in the image."""

    EXT4 = "ext4"
    XFS = "xfs"

    def maker(self) -> list[str]:
        """The command that makes it, but for the image's path."""
        return ["mkfs.ext4", "-q", "-F"] if self is FileSystem.EXT4 else ["mkfs.xfs", "-q", "-f"]


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
    except OSError as e:
        raise TrialError(f"{command[0]}: {e.strerror}") from e
    if done.returncode:
        raise TrialError(f"{' '.join(command)}: {done.stderr.strip()}")


def _persist(command: Sequence[str]) -> None:
    """Again until it works: the kernel may hold a mount for a moment after the last process has gone."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return _run(command)
        except TrialError:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_S)


class LoopDisk:
    """A file system in a sparse file. Used in a `with`, which unmounts it and removes the image at the end."""

    def __init__(self, directory: Path, size_mb: int, kind: FileSystem = FileSystem.EXT4, inodes: int = 0) -> None:
        """`directory`: for the image and the mount point. XFS needs 300 MB. `inodes`: of an ext4; 0: as many as is usual."""
        self._image, self.mount_point = directory / "disk.img", directory / "disk"
        self._size_mb, self._kind = size_mb, kind
        self._more = ["-N", str(inodes)] if inodes and kind is FileSystem.EXT4 else []

    def __enter__(self) -> LoopDisk:
        if os.geteuid():
            raise TrialError("mounting needs root")
        try:
            with self._image.open("xb") as image:
                image.truncate(self._size_mb << 20)
            _run([*self._kind.maker(), *self._more, str(self._image)])
            self.mount_point.mkdir()
            self._mount()
            self.mount_point.chmod(0o755)
        except BaseException:
            self._give_up()
            raise
        return self

    def shut_down(self) -> None:
        """Cuts the power: nothing more reaches the image."""
        fd = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def recover(self) -> None:
        """Mounts again: the file system's own recovery. Nobody may use it meanwhile. Raises: TrialError."""
        _persist(["umount", str(self.mount_point)])
        self._mount()

    def _mount(self) -> None:
        _persist(["mount", "-t", self._kind.value, "-o", "loop", str(self._image), str(self.mount_point)])

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._give_up()

    def _give_up(self) -> None:
        try:
            if os.path.ismount(self.mount_point):
                _persist(["umount", str(self.mount_point)])
        except TrialError:
            _run(["umount", "--lazy", str(self.mount_point)])
            raise
        finally:
            self._image.unlink(missing_ok=True)
