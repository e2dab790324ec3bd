"""Which file system a path is on, by the mount table."""

from __future__ import annotations

import os

import pytest

from mailismus.maildir import mounts
from mailismus.maildir.mounts import Mounts, read_mounts

TABLE = rb"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 8:17 / /srv rw - xfs /dev/sdb1 rw
31 22 0:40 / /srv/mail rw,relatime shared:7 master:2 - nfs4 store:/export/mail rw,vers=4.2
32 22 0:41 / /home/ann rw - nfs4 store:/export/home/ann rw
33 22 0:42 / /home/with\040blank rw - cifs //files/share rw
34 22 8:33 / /twice rw - ext4 /dev/sdc1 rw
35 34 8:49 / /twice rw - ext4 /dev/sdd1 rw
36 22 8:1 /var/ms /bind rw - ext4 /dev/sda1 rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "file_system"),
    [
        (b"/var/ms/joe/Maildir", b"8:1"),
        (b"/", b"8:1"),
        (b"/srv", b"8:17"),
        (b"/srvmail/joe", b"8:1"),
        (b"/srv/joe", b"8:17"),
        (b"/srv/mail/joe/Maildir", b"store"),
        (b"/home/ann/Maildir", b"store"),
        (b"/home/bob/Maildir", b"8:1"),
        (b"/home/with blank/Maildir", b"files"),
        (b"/twice/joe", b"8:49"),
        (b"/bind/joe", b"8:1"),
        (b"relative/path", None),
        (b"", None),
    ],
)
def test_the_nearest_mount_above_counts(path: bytes, file_system: bytes | None) -> None:
    assert Mounts(TABLE.splitlines(keepends=True)).file_system_of(path) == file_system


def test_of_no_table_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "MOUNTS", "/nonexistent/mountinfo")
    assert read_mounts().file_system_of(b"/var/ms") is None


def test_this_host_has_a_root() -> None:
    assert read_mounts().file_system_of(os.fsencode(os.path.abspath(__file__))) is not None
