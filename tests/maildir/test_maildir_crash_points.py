"""A power cut at each moment of deliveries into maildirs, in every state that the file system may leave.

What a process was told to be delivered is there, whole; nothing else is in `new`, and nothing half. The next process
delivers into what it finds.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from mailismus.chunks.generator import NameGenerator
from mailismus.maildir.boots import BootSequence
from mailismus.maildir.delivery import begin_delivery
from mailismus.maildir.names import strategy_of
from mailismus.maildir.store import MaildirStore
from mailismus.maildir.sweep import sweep
from tests.durability.crash.acts import Kind
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.states import FileSystem, Story

NOW = 1_700_000_000.25
ROOT = "/q/ms"
HEAD = b"Return-Path: <s@a.example>\n"


class NoLinks(TreeDisk):
    """A file system without links."""

    def link(self, path: str, new_path: str) -> None:
        raise OSError(errno.EPERM, "no links here", path)


class LateLinks(TreeDisk):
    """A network on which the reply to each link is lost, and the link is done."""

    def link(self, path: str, new_path: str) -> None:
        super().link(path, new_path)
        raise OSError(errno.EIO, "no reply", path)


class Process:
    """A process that delivers. `names`: as in the configuration."""

    def __init__(self, disk: TreeDisk, number: int = 1, names: str = "MPQ") -> None:
        self._disk = disk
        generator = NameGenerator(lambda: number, lambda size: bytes([number]) * size)
        if "#" in names:
            generator.use_boot_counter(BootSequence(disk, ROOT, b"%d" % number).next)
        self.store = MaildirStore(disk, strategy_of(names, b"mx"), generator)

    def deliver(self, text: str, user: bytes = b"joe") -> None:
        delivery = begin_delivery(self.store, ROOT, user, "Maildir", NOW, HEAD, lambda: 0.0)
        try:
            delivery.write(text.encode() + b"\r\n")
            delivery.finish()
        finally:
            delivery.abandon()
        self._disk.mark(text)


def first(disk: TreeDisk) -> None:
    """Into nothing."""
    Process(disk).deliver("one")


def several(disk: TreeDisk) -> None:
    """Users, and a process that comes later."""
    process = Process(disk)
    process.deliver("one")
    process.deliver("two", b"ann")
    Process(disk, 2).deliver("three")


def killed_before(disk: TreeDisk) -> None:
    """Another process made directories, and was killed before it synced any."""
    for path in (ROOT, f"{ROOT}/joe", f"{ROOT}/joe/Maildir", f"{ROOT}/joe/Maildir/tmp", f"{ROOT}/joe/Maildir/new"):
        disk.make_directory(path)
    Process(disk).deliver("one")


def abandoned(disk: TreeDisk) -> None:
    """A delivery is given up, the next one is not."""
    process = Process(disk)
    delivery = begin_delivery(process.store, ROOT, b"joe", "Maildir", NOW, HEAD, lambda: 0.0)
    delivery.write(b"never\r\n")
    delivery.abandon()
    process.deliver("one")


def with_quota(disk: TreeDisk) -> None:
    """A quota that is counted anew, then added to."""
    process = Process(disk)
    process.deliver("one")
    file = disk.create(f"{ROOT}/joe/Maildir/maildirsize")
    file.write_at(0, (b"100000S\n",))
    file.close()
    process.deliver("two")
    process.deliver("three")


def counted(disk: TreeDisk) -> None:
    """Names that count boots."""
    disk.make_directory(ROOT)
    disk.sync_directory("/q")
    process = Process(disk, 1, "#X")
    process.deliver("one")
    Process(disk, 1, "#X").deliver("two")


def by_inode(disk: TreeDisk) -> None:
    """Names with the number of the inode, which the next file may get."""
    process = Process(disk, 1, "IPQ")
    process.deliver("one")
    process.deliver("two")


WORKLOADS: dict[str, tuple[Callable[[TreeDisk], None], type[TreeDisk]]] = {
    **{
        work.__name__: (work, TreeDisk) for work in (first, several, killed_before, abandoned, with_quota, counted, by_inode)
    },
    "without links": (several, NoLinks),
    "links without a reply": (several, LateLinks),
}


@pytest.mark.parametrize("file_system", list(FileSystem), ids=lambda one: one.name.lower())
@pytest.mark.parametrize("name", WORKLOADS)
def test_what_was_delivered_survives_and_nothing_half_is_there(name: str, file_system: FileSystem) -> None:
    work, kind = WORKLOADS[name]
    disk = kind()
    disk.make_directory("/q")  # one of its two file systems
    disk.sync_directory("/")
    begin = len(disk.acts)
    work(disk)
    texts = [act.mark for act in disk.acts if act.kind is Kind.MARK]
    whole = {HEAD + str(text).encode() + b"\n" for text in texts}
    story, states = Story(disk.acts), 0
    for crash in story.crashes(begin, file_system):
        tree = story.tree(crash)
        told = {HEAD + str(act.mark).encode() + b"\n" for act in disk.acts[: crash.length] if act.kind is Kind.MARK}
        found = sorted(tree.data_of(path) for path in tree.names.files if "/new/" in path)
        assert set(found) <= whole
        assert len(found) == len(set(found))
        assert told <= set(found), (crash, told - set(found))
        _go_on(kind(tree), found)
        states += 1
    print(f"{name}: {states} states")
    assert states > 80


def _go_on(disk: TreeDisk, before: list[bytes]) -> None:
    """The next process delivers into what it finds, sweeps, and changes nothing else."""
    process = Process(disk, 3)
    process.deliver("after")
    for user in (b"joe", b"ann"):
        sweep(process.store, ROOT, user, "Maildir", NOW + 1e9)
    found = sorted(_data(disk, path) for path in disk.paths(("",)) if "/new/" in path)
    assert found == sorted([*before, HEAD + b"after\n"])
    assert [path for path in disk.paths(("",)) if "/tmp/" in path] == []


def _data(disk: TreeDisk, path: str) -> bytes:
    file = disk.open(path)
    try:
        return file.read_at(0, 1 << 20)
    finally:
        file.close()
