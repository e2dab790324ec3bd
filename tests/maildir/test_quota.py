"""The quota of a maildir on a real file system: what is counted, when it is counted anew, what is refused."""

from __future__ import annotations

import os
import pathlib

import pytest

from mailismus.chunks.generator import NameGenerator
from mailismus.chunks.names import PartStrategy
from mailismus.disk.posix import PosixDisk
from mailismus.errors import MailboxFull
from mailismus.maildir.delivery import LIFETIME_S, begin_delivery
from mailismus.maildir.maildirsize import MAX_BYTES
from mailismus.maildir.quota import RECOUNT_S
from mailismus.maildir.store import MaildirStore

EACH = len(b"Head: x\nHello\n")


class Box:
    """A maildir, and deliveries into it."""

    def __init__(self, root: pathlib.Path) -> None:
        self._root = root
        self.store = MaildirStore(PosixDisk(), PartStrategy("MPQ", b"mx"), NameGenerator())
        self.store.open(str(root), b"joe", "Maildir").close()
        self.path = root / "joe/Maildir"
        self.file = self.path / "maildirsize"
        self.now_s = self.path.stat().st_mtime
        self.elapsed_s = 0.0

    def limit(self, text: str) -> None:
        self.file.write_text(text)

    def deliver(self, content: bytes = b"Hello\r\n") -> None:
        delivery = begin_delivery(
            self.store, str(self._root), b"joe", "Maildir", self.now_s, b"Head: x\n", lambda: self.elapsed_s
        )
        try:
            delivery.write(content)
            delivery.finish()
        finally:
            delivery.abandon()

    def count(self, folder: str = "new") -> int:
        return len(list((self.path / folder).iterdir()))

    def age_all(self, seconds: float) -> None:
        """Let the count, and all that changed before, be older: `now` moves."""
        self.now_s += seconds


@pytest.fixture
def box(tmp_path: pathlib.Path) -> Box:
    return Box(tmp_path)


def test_without_a_quota_nothing_is_counted(box: Box) -> None:
    box.deliver()
    assert not box.file.exists()
    assert [path.name.rpartition(",")[2] for path in (box.path / "new").iterdir()] == [f"S={EACH}"]


def test_a_delivery_appends_what_it_added(box: Box) -> None:
    box.limit("1000S,10C\n100 1\n")
    box.deliver()
    box.deliver()
    assert box.file.read_text() == f"1000S,10C\n100 1\n{EACH} 1\n{EACH} 1\n"


@pytest.mark.parametrize("limit", [f"{3 * EACH}S", "3C", f"{3 * EACH}S,3C"])
def test_what_does_not_fit_is_refused_and_leaves_nothing(box: Box, limit: str) -> None:
    box.limit(f"{limit}\n")
    for _ in range(3):
        box.deliver()
    with pytest.raises(MailboxFull) as full:
        box.deliver()
    assert not full.value.is_too_large
    assert (box.count(), box.count("tmp")) == (3, 0)
    assert box.file.read_text() == f"{limit}\n{3 * EACH} 3\n"


def test_what_never_fits_is_told(box: Box) -> None:
    box.limit(f"{EACH}S\n")
    with pytest.raises(MailboxFull) as full:
        box.deliver(b"Hello, hello\r\n")
    assert full.value.is_too_large


def test_mail_that_somebody_removed_without_a_word_makes_room(box: Box) -> None:
    box.limit("2C\n")
    box.deliver()
    box.deliver()
    with pytest.raises(MailboxFull):
        box.deliver()
    os.unlink(next((box.path / "new").iterdir()))
    box.now_s = box.file.stat().st_ctime  # the count is new: what changed behind it is the reason for another
    box.deliver()
    assert box.count() == 2


def test_a_count_that_is_new_is_believed_and_an_old_one_is_not(box: Box) -> None:
    box.limit("2C\n")
    box.deliver()
    box.deliver()
    with pytest.raises(MailboxFull):
        box.deliver()
    counted = box.file.stat().st_ino
    box.now_s = box.file.stat().st_ctime
    with pytest.raises(MailboxFull):
        box.deliver()
    assert box.file.stat().st_ino == counted, "nothing changed, and the count is new"
    box.age_all(RECOUNT_S + 1)
    with pytest.raises(MailboxFull):
        box.deliver()
    assert box.file.stat().st_ino != counted


def test_what_others_wrote_into_the_file_counts(box: Box) -> None:
    box.limit("2C\n100 2\n-50 -1\n")
    box.deliver()
    assert box.count() == 1
    with box.file.open("a") as file:
        file.write(f"-{EACH} -1\n")
    box.deliver()
    assert box.count() == 2


@pytest.mark.parametrize("lines", ["", "nonsense\n", "-5 -5\n", "1 1\n2", "1 1\n" * (MAX_BYTES // 4)])
def test_a_file_that_makes_no_sense_or_is_too_long_is_written_anew(box: Box, lines: str) -> None:
    box.deliver()
    box.limit(f"100000S,10C\n{lines}")
    box.deliver()
    assert box.file.read_text() == f"100000S,10C\n{EACH} 1\n{EACH} 1\n"


def test_a_count_has_folders_and_read_mail_and_nothing_else(box: Box) -> None:
    for name, content in (
        ("cur/1.a,S=1000:2,S", b"x"),
        ("cur/2.a:2,S", b"x" * 10),
        (".Sent/cur/3.a,S=100:2,", b"x"),
        (".Trash/new/4.a", b"x" * 20),
        (".Sent/tmp/5.a", b"x" * 10_000),
        ("tmp/6.a", b"x" * 10_000),
        ("cur/.hidden", b"x" * 10_000),
        ("folder/cur/7.a", b"x" * 10_000),
        (".NoFolder", b"x" * 10_000),
    ):
        path = box.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    box.limit("100000S\n")
    box.deliver()
    assert box.file.read_text() == f"100000S\n1130 4\n{EACH} 1\n"


@pytest.mark.parametrize("name", ["maildirsize", ".Sent", ".Sent/cur"])
def test_no_link_that_a_user_made_is_followed(box: Box, name: str, tmp_path: pathlib.Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "big").write_bytes(b"x" * 10_000)
    (elsewhere / "maildirsize").write_text("1S\n")
    (box.path / name).parent.mkdir(exist_ok=True)
    if name == "maildirsize":
        box.file.symlink_to(elsewhere / "maildirsize")
    else:
        box.limit("5000S\n")
        (box.path / name).symlink_to(elsewhere)
    box.deliver()
    assert (elsewhere / "maildirsize").read_text() == "1S\n"
    assert box.count() == 1


def test_a_delivery_that_takes_a_day_is_aborted(box: Box) -> None:
    delivery = begin_delivery(box.store, str(box.path.parents[1]), b"joe", "Maildir", box.now_s, b"", lambda: box.elapsed_s)
    box.elapsed_s = LIFETIME_S - 1
    delivery.write(b"a\r\n")
    box.elapsed_s = LIFETIME_S
    with pytest.raises(TimeoutError):
        delivery.write(b"b\r\n")
    with pytest.raises(TimeoutError):
        delivery.finish()
    delivery.abandon()
    assert (box.count(), box.count("tmp")) == (0, 0)


def test_the_size_in_the_name_is_that_of_the_file_whatever_the_content_ends_with(box: Box) -> None:
    for content in (b"Hello\r\n", b"Hello\r", b"..\r\n", b"", b"\r"):
        box.deliver(content)
    found = {path.name.rpartition(",S=")[2]: str(path.stat().st_size) for path in (box.path / "new").iterdir()}
    assert len(found) >= 4
    assert all(said == real for said, real in found.items())
