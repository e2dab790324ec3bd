"""Files with a secret: one password or token, which the server's user or root owns and nobody else may read.

*Rules*
- The file that was opened is judged, not the name: so a symbolic link is good if what it leads to is (as where secrets are
  mounted into a container), and nobody can exchange the file between the check and the reading.
- A regular file of at most `MAX_BYTES`, of one line of UTF-8; the end of the line is no part of the secret, blanks are.
- Its owner is the process's user or root; only the owner has permissions. For root any owner is good: so root can check the
  configuration of a server that runs as another user.
- What is read goes into a `Secret`, which shows itself nowhere and is overwritten with `wipe`.

*Weakness*: Python copies what it likes; see `Secret`. A file system that does not answer blocks the caller, as in
`regular_file`.
"""

from __future__ import annotations

import os
import pwd
import stat
from typing import NoReturn, SupportsIndex

import attrs

from mailismus.errors import SecretError
from mailismus.regular_file import opened_regular

MAX_BYTES = 8192
"""With its end. In base64 it fits the longest line that servers must take (RFC 4954 4)."""
_NOT_ALONE = stat.S_IRWXG | stat.S_IRWXO


class Secret(bytearray):
    """Bytes that show themselves in no log, traceback, pickle or copy, and can be overwritten.

    Not guaranteed: that no other copy exists. A slice, a `bytes` or a `str` of them is another object, which stays in memory
    after its end until other objects take its place.
    """

    def __repr__(self) -> str:
        return "<secret>"

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        return "<secret>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a secret can't be pickled or copied")

    def wipe(self) -> None:
        """Overwrite the bytes, and empty it."""
        self[:] = bytes(len(self))
        self.clear()


@attrs.frozen
class Version:
    """Which bytes a file holds, told by its inode and times: it says nothing about the bytes. `changed_at`: nanoseconds."""

    device: int
    inode: int
    size_bytes: int
    changed_at: int
    status_changed_at: int

    def __bytes__(self) -> bytes:
        numbers = (self.device, self.inode, self.size_bytes, self.changed_at, self.status_changed_at)
        return b",".join(b"%d" % number for number in numbers)


@attrs.frozen
class SecretContent:
    """A secret, and the version of the file that it was read from."""

    secret: Secret
    version: Version


def read_secret(path: str, *, is_token: bool = False) -> SecretContent:
    """Read the secret in a file. `is_token`: printable ASCII without blanks. Raises `SecretError`. Blocks."""
    buffer = Secret(MAX_BYTES + 1)
    try:
        with opened_regular(path) as (descriptor, status):
            _check_owner(path, status)
            size = 0
            while size < len(buffer) and (count := os.readv(descriptor, [memoryview(buffer)[size:]])):
                size += count
            version = _version_of(os.fstat(descriptor))
        secret = _take_line(buffer, size, path)
    except FileNotFoundError as error:
        raise SecretError(error.strerror or "no such file", f"write it, mode 600, in {path}", is_missing=True) from None
    except OSError as error:
        raise SecretError(error.strerror or "unknown error", f"let this user read {path}, a regular file") from None
    finally:
        buffer.wipe()
    try:
        _check_text(secret, path, is_token)
    except SecretError:
        secret.wipe()
        raise
    return SecretContent(secret, version)


def version_of(path: str) -> Version | None:
    """Return which version of the file is there; None: none. Reads nothing of it. Blocks."""
    try:
        return _version_of(os.stat(path))
    except OSError:
        return None


def _version_of(status: os.stat_result) -> Version:
    return Version(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _check_owner(path: str, status: os.stat_result) -> None:
    user = os.geteuid()
    if status.st_uid not in (user, 0) and user != 0:
        raise SecretError(
            f"it belongs to {_name_of(status.st_uid)}, and not to {_name_of(user)} or root", f"chown {_name_of(user)} {path}"
        )
    if status.st_mode & _NOT_ALONE:
        mode = stat.S_IMODE(status.st_mode)
        raise SecretError(f"others than its owner may use it (mode {mode:04o})", f"chmod 600 {path}")


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _take_line(buffer: Secret, size: int, path: str) -> Secret:
    """Return the line in the first bytes of a buffer, as a secret of its own."""
    if size > MAX_BYTES:
        raise SecretError(f"it is larger than {MAX_BYTES} bytes", f"write the secret alone into {path}")
    if size and buffer[size - 1] == 0x0A:
        size -= 1
        if size and buffer[size - 1] == 0x0D:
            size -= 1
    secret = Secret(size)
    with memoryview(buffer) as view:
        secret[:] = view[:size]
    return secret


def _check_text(secret: Secret, path: str, is_token: bool) -> None:
    if not secret:
        raise SecretError("it is empty", f"write the secret into {path}")
    if any(byte in secret for byte in (0x00, 0x0A, 0x0D)):
        raise SecretError("it has more than one line, or a NUL", f"write the secret alone into {path}, in one line")
    if is_token and not all(33 <= byte < 127 for byte in secret):
        raise SecretError("it has other characters than a token has", f"write the token alone into {path}, in one line")
    if not secret.isascii():
        try:
            secret.decode("utf-8")
        except UnicodeDecodeError:
            raise SecretError("it is not UTF-8", f"store {path} in UTF-8") from None
