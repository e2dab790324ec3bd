"""Silos: in which of the spool's 32 directories a message file lies, and under which names (pure).

Spool ids are consecutive, so the remainder fills the silos evenly. A message file has one name, `SPID.msg`; where hard links
stand in for the counting of references it has one name a live recipient, `SPID-N.msg`, in the same silo. What a file is
called says which of the two it is, so either way reads what the other left.
"""

from __future__ import annotations

import re

from mailismus.mail.ids import SpoolId, format_spool_id, parse_spool_id

SILO_COUNT = 32

SILO_NAMES = tuple(f"{silo:02x}" for silo in range(SILO_COUNT))
"""Names of the directories, `00` to `1f`."""

_NAME = re.compile(r"([0-9A-F]{16})(?:-([1-9][0-9]{0,8}))?\.msg")


def silo_path(root: str, spool_id: SpoolId) -> str:
    """The directory of the message's file."""
    return f"{root}/{SILO_NAMES[spool_id % SILO_COUNT]}"


def message_path(root: str, spool_id: SpoolId, number: int = 0) -> str:
    """The path of the message's file: under the name that all recipients share (0), or that of recipient `number` alone."""
    suffix = f"-{number}.msg" if number else ".msg"
    return f"{silo_path(root, spool_id)}/{format_spool_id(spool_id)}{suffix}"


def parse_message_name(name: str) -> tuple[SpoolId, int] | None:
    """The message that a name in a silo is of, and the number of the recipient whose name it is (0: all share it); None: it
    is no name of ours."""
    found = _NAME.fullmatch(name)
    spool_id = parse_spool_id(found[1]) if found is not None else None
    return (spool_id, int(found[2] or 0)) if found is not None and spool_id is not None else None
