"""A loop-mounted file system whose power can be cut (root, Linux, ext4).

The shutdown call of ext4 (FS_IOC_SHUTDOWN without writing its journal) makes every later write and barrier fail and lets
nothing more reach the image: what was not made durable before is gone after the remount, as after a power cut. The
processes that use it must have ended before it can be unmounted.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from benchmarks.processes import TrialError

FS_IOC_SHUTDOWN = (2 << 30) | (4 << 16) | (ord("X") << 8) | 125  # _IOR('X', 125, __u32)
NO_LOG_FLUSH = 2


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise TrialError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


class CuttableDisk:
    """A file system in a file. Used in a `with`, which unmounts it at the end."""

    def __init__(self, directory: Path, size_mb: int) -> None:
        self._image, self.mount_point = directory / "disk.img", directory / "disk"
        self._size_mb = size_mb
        self._device = ""

    def __enter__(self) -> CuttableDisk:
        if os.geteuid():
            raise TrialError("power cuts need root")
        with self._image.open("wb") as image:
            image.truncate(self._size_mb << 20)
        _run(["mkfs.ext4", "-q", "-F", str(self._image)])
        self.mount_point.mkdir()
        self._device = _run(["losetup", "--find", "--show", str(self._image)])
        try:
            _run(["mount", self._device, str(self.mount_point)])
        except BaseException:
            _run(["losetup", "--detach", self._device])
            raise
        self.mount_point.chmod(0o755)
        return self

    def cut(self) -> None:
        """Loses what is not durable and mounts again."""
        fd = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)
        self._unmount()
        _run(["mount", self._device, str(self.mount_point)])

    def _unmount(self) -> None:
        for last in (False,) * 20 + (True,):
            try:
                _run(["umount", str(self.mount_point)])
                return
            except TrialError:
                if last:
                    raise
                time.sleep(0.1)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._unmount()
        finally:
            _run(["losetup", "--detach", self._device])
            self._image.unlink()
