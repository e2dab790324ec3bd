"""The directories of `<sendmail>`, and which modes of theirs are safe.

    ROOT         0755, the server's   every user passes through
    ROOT/socket  0666                 the server's socket: who speaks, the kernel says
    ROOT/drop    3733, the server's   every user makes files here, and sees none of others
    ROOT/aside   0700, the server's   what is damaged, half or refused

*Rules*: the drop directory is sticky, so that nobody removes or replaces another user's file; it is set-group-id, so that
its files are of the server's group, which alone reads them (0640); nobody but the server lists it. There is no program with
the set-group-id bit: a script can have none, and none is needed. A directory that is otherwise is refused, by the server at
its start and by the command: a message in it could be read, removed or replaced by others.
"""

from __future__ import annotations

import os
import stat

from mailismus.errors import StartError

DROP_MODE = 0o3733
FILE_MODE = 0o640
_ROOT_MODE = 0o755
_ASIDE_MODE = 0o700


def socket_path(rootpath: str) -> str:
    """The server's socket for messages."""
    return os.path.join(rootpath, "socket")


def drop_path(rootpath: str) -> str:
    """The drop directory."""
    return os.path.join(rootpath, "drop")


def aside_path(rootpath: str) -> str:
    """The directory of files that can't be taken."""
    return os.path.join(rootpath, "aside")


def make_places(rootpath: str) -> None:
    """Make what is missing, and refuse what is unsafe. For the server. Raises `StartError`."""
    _make(rootpath, _ROOT_MODE)
    _make(drop_path(rootpath), DROP_MODE)
    _make(aside_path(rootpath), _ASIDE_MODE)
    for path in (rootpath, drop_path(rootpath), aside_path(rootpath)):
        found = _look(path)
        if found.st_uid != os.geteuid():
            raise StartError(
                os.EX_NOPERM,
                f"<rootpath> of <sendmail>: {path} belongs to uid {found.st_uid}: chown -R {os.geteuid()} {rootpath}",
            )
    if stat.S_IMODE(_look(rootpath).st_mode) & 0o022:
        raise StartError(os.EX_CONFIG, f"<rootpath> of <sendmail>: others can write {rootpath}: chmod go-w {rootpath}")
    if stat.S_IMODE(_look(aside_path(rootpath)).st_mode) & 0o077:
        raise StartError(os.EX_CONFIG, f"others can look into {aside_path(rootpath)}: chmod 700 {aside_path(rootpath)}")
    group = check_drop(drop_path(rootpath))
    if group not in (os.getegid(), *os.getgroups()):
        path = drop_path(rootpath)
        raise StartError(
            os.EX_CONFIG, f"{path} is of group {group}, which the server does not have: chgrp {os.getegid()} {path}"
        )


def check_drop(path: str) -> int:
    """Refuse a drop directory that is unsafe; return its group. Raises `StartError`: 75 if there is none, 78."""
    found = _look(path)
    mode = stat.S_IMODE(found.st_mode)
    wrong = ""
    if not stat.S_ISDIR(found.st_mode):
        wrong = "is no directory, or a symbolic link"
    elif mode & 0o022 and not mode & stat.S_ISVTX:
        wrong = "is not sticky, so that users can remove the mail of others"
    elif not mode & stat.S_ISGID:
        wrong = "is not set-group-id, so that the server could not read what is dropped"
    elif mode & 0o044:
        wrong = "can be listed by others than the server"
    if wrong:
        raise StartError(os.EX_CONFIG, f"the drop directory {path} {wrong} (mode {mode:04o}): chmod {DROP_MODE:o} {path}")
    return found.st_gid


def unreachable(rootpath: str) -> str:
    """The directory above that other users can't pass through; empty: there is none."""
    path = rootpath
    while (above := os.path.dirname(path)) != path:
        path = above
        try:
            if not os.stat(path).st_mode & stat.S_IXOTH:
                return path
        except OSError:
            return path
    return ""


def _make(path: str, mode: int) -> None:
    """Make a directory of this mode, if there is none."""
    try:
        os.makedirs(path)
    except FileExistsError:
        return
    except OSError as error:
        raise StartError(os.EX_CANTCREAT, f"{path} can't be made: {error.strerror}") from None
    try:
        os.chmod(path, mode)
    except OSError as error:
        os.rmdir(path)
        command = f"install -d -o {os.geteuid()} -g {os.getegid()} -m {mode:o} {path}"
        raise StartError(
            os.EX_NOPERM, f"{path} can't be made with mode {mode:o} ({error.strerror}): as root: {command}"
        ) from None
    if stat.S_IMODE(os.stat(path).st_mode) != mode:
        os.rmdir(path)
        command = f"install -d -o {os.geteuid()} -g {os.getegid()} -m {mode:o} {path}"
        raise StartError(os.EX_NOPERM, f"the system gives {path} no mode {mode:o}; as root: {command}")


def _look(path: str) -> os.stat_result:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        when = "the server makes it when it starts: restart one that runs since before <sendmail> was written"
        raise StartError(os.EX_TEMPFAIL, f"there is no directory {path}: {when}") from None
    except PermissionError:
        raise StartError(os.EX_NOPERM, f"no permission to reach {path}: a directory above it is closed to users") from None
    except OSError as error:
        raise StartError(os.EX_IOERR, f"{path}: {error.strerror}") from None
