"""Spool ids that no other process has: epochs, and single ids, each taken by a file that one process alone makes.

    00000007            an epoch: its process gives out all of its ids
    00000008.00000003   one id of an epoch that no process has: a program takes it for one message

A process takes what is higher than all for which a file is there, and makes its file exclusively. So processes need no lock
between them, and no spool id is used twice.

*Rules*: the name is durable before an id is used. Files of what was taken earlier go, never the highest one. A process that
finds a higher one behind its own gives its own up: between its look and its act others may have made and removed it. That
relies on a listing of this small directory, which misses no name that is there all the time (Linux reads it under the
directory's lock).
"""

from __future__ import annotations

from collections.abc import Callable

from mailismus.disk.interface import IDirectory
from mailismus.mail.ids import SpoolId

_DIGITS = 8
_LAST = 0xFFFF_FFFF

_Taken = tuple[int, int]
"""An epoch, and the number of one id of it; 0: all of them."""


def take_epoch(directory: IDirectory, above: int) -> int:
    """Take an epoch higher than `above` and than all that were taken. On return it is durable. Raises OSError."""
    return _take(directory, (above, 0), lambda highest: (highest[0] + 1, 0))[0]


def take_spool_id(directory: IDirectory) -> SpoolId:
    """Take one spool id of an epoch that no process has. On return it is durable. Raises OSError."""
    epoch, number = _take(directory, (0, 0), _following)
    return SpoolId((epoch << 32) | number)


def _following(highest: _Taken) -> _Taken:
    epoch, number = highest
    return (epoch, number + 1) if 0 < number < _LAST else (epoch + 1, 1)


def _take(directory: IDirectory, above: _Taken, follow: Callable[[_Taken], _Taken]) -> _Taken:
    while True:
        before = _all_taken(directory)
        mine = follow(max([above, *before]))
        try:
            directory.create(_format(mine)).close()
        except FileExistsError:
            continue
        if max(_all_taken(directory), default=mine) > mine:
            _remove(directory, mine)
            continue
        directory.sync()
        for old in before:
            _remove(directory, old)
        return mine


def taken_epochs(directory: IDirectory) -> list[int]:
    """The epochs of which a file is there. Raises OSError."""
    return [epoch for epoch, _ in _all_taken(directory)]


def _all_taken(directory: IDirectory) -> list[_Taken]:
    return [taken for name in directory.names() if (taken := _parse(name)) is not None]


def _remove(directory: IDirectory, taken: _Taken) -> None:
    try:
        directory.unlink(_format(taken))
    except FileNotFoundError:
        pass  # another process removed it


def _format(taken: _Taken) -> str:
    epoch, number = taken
    return f"{format_epoch(epoch)}.{number:0{_DIGITS}x}" if number else format_epoch(epoch)


def _parse(name: str) -> _Taken | None:
    first, dot, second = name.partition(".")
    epoch = parse_epoch(first)
    number = parse_epoch(second) if dot else 0
    return None if epoch is None or number is None or (dot and not number) else (epoch, number)


def format_epoch(epoch: int) -> str:
    """The name of an epoch's file."""
    return f"{epoch:0{_DIGITS}x}"


def parse_epoch(name: str) -> int | None:
    """The epoch of a file of this name; None: it is no such name."""
    if len(name) < _DIGITS or not set(name) <= set("0123456789abcdef"):
        return None
    return int(name, 16)


def parse_single_id(name: str) -> SpoolId | None:
    """The spool id that a file of this name was made for; None: it is no such name."""
    taken = _parse(name)
    return None if taken is None or not taken[1] else SpoolId((taken[0] << 32) | taken[1])
