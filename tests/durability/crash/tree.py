"""A tree of files as a value: what is on a disk at one moment. Cheap to tell from another, cheap to build a disk of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import blake2b

import attrs

from tests.durability.crash.acts import parent_of


class Content:
    """A file's bytes."""

    __slots__ = ("data", "digest")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.digest = blake2b(data, digest_size=16).digest()


EMPTY = Content(b"")


@attrs.frozen(eq=False)
class Names:
    """Directories, and which file each name leads to."""

    directories: Collection[str]
    files: Mapping[str, int]
    """Inode by path."""
    shape: list[tuple[bytes, int]] = attrs.field(init=False)
    """What tells it from another, name by name; inodes by the first of their names, whatever their numbers."""
    head: bytes = attrs.field(init=False)

    @shape.default
    def _shape(self) -> list[tuple[bytes, int]]:
        first: dict[int, int] = {}
        ordered = sorted(self.files.items())
        return [
            (b"%s\0%d\0" % (path.encode(), first.setdefault(inode, at)), inode) for at, (path, inode) in enumerate(ordered)
        ]

    @head.default
    def _head(self) -> bytes:
        return "\0".join(sorted(self.directories)).encode()


class Tree:
    """Names and the bytes behind them."""

    __slots__ = ("contents", "digest", "names", "numbers")

    def __init__(self, names: Names, contents: Mapping[int, Content], numbers: Mapping[int, int] | None = None) -> None:
        """`contents` by inode; one without is empty. `numbers`: what the file system calls an inode; a file without gets a
        number that no other one has. Trees that differ in these alone count as the same."""
        self.names = names
        self.contents = contents
        self.numbers = numbers or {}
        parts = [names.head]
        for name, inode in names.shape:
            parts.append(name)
            parts.append(contents.get(inode, EMPTY).digest)
        self.digest = blake2b(b"".join(parts), digest_size=16).digest()

    def data_of(self, path: str) -> bytes:
        """The bytes under a name."""
        return self.contents.get(self.names.files[path], EMPTY).data


def names_of(directories: Collection[str], files: Mapping[str, int]) -> Names:
    """What can be reached: a name in a directory that is not there is none."""
    reached = {"/"}
    for path in sorted(directories):
        if parent_of(path) in reached:
            reached.add(path)
    return Names(reached, {path: inode for path, inode in files.items() if parent_of(path) in reached})


NOTHING = Tree(Names(("/",), {}), {})
