"""The user that the server runs as, when root starts it with twistd's `--uid` and `--gid`.

twistd drops root's privileges for good, but only after the service was made and the process went into the background. That
is too late to refuse a start. So the service is made under that user's *effective* ids, including groups; only ports are
bound as root. The user owns all new files from the beginning (queue, spool, logs, the admin socket), and a file that he
can't read or write refuses the start.

*Not here*: the final drop, which twistd does.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from mailismus.errors import StartError
from mailismus.start.exits import Exit


@attrs.frozen
class Privileges:
    """The ids of the server; None: those of the process."""

    uid: int | None = None
    gid: int | None = None

    @contextmanager
    def lowered(self) -> Iterator[None]:
        """Run the block as that user. Raises `StartError` if this process may not change to him."""
        if self.uid is None and self.gid is None:
            yield
            return
        before = os.geteuid(), os.getegid(), os.getgroups()
        try:
            self._lower()
            yield
        finally:
            _become(*before)

    def _lower(self) -> None:
        try:
            if self.uid is not None:
                user = pwd.getpwuid(self.uid)
                gid = user.pw_gid if self.gid is None else self.gid
                os.initgroups(user.pw_name, gid)
                os.setegid(gid)
                os.seteuid(self.uid)
            elif self.gid is not None:
                os.setegid(self.gid)
        except KeyError:
            raise StartError(
                Exit.USAGE, f"--uid {self.uid}: there is no such user; make one with useradd --system"
            ) from None
        except PermissionError:
            raise StartError(Exit.PERMISSION, "--uid and --gid are for root; start as that user without them") from None

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Inside `lowered`: run the block as root again, for ports below 1024."""
        if self.uid is None or os.geteuid() == 0 or os.getuid() != 0:
            yield
            return
        user = os.geteuid()
        os.seteuid(0)
        try:
            yield
        finally:
            os.seteuid(user)


def find_privileges(runner: Mapping[str, Any]) -> Privileges:
    """The ids that twistd was given. Raises `StartError` for an option that would break the server."""
    if runner.get("chroot") is not None:
        raise StartError(
            Exit.USAGE,
            "--chroot is not available in this version: the paths of queue and logs would change under the server",
        )
    return Privileges(runner.get("uid"), runner.get("gid"))


def _become(uid: int, gid: int, groups: list[int]) -> None:
    if os.getuid() == 0:
        os.seteuid(0)
        os.setegid(gid)
        os.setgroups(groups)
    else:
        os.setegid(gid)
    os.seteuid(uid)
