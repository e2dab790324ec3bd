"""Silos: which of the spool's 32 directories holds a message file, and under which names (pure).

Spool ids are consecutive, so the remainder fills the silos evenly. A message file has one name, `SPID.msg`. Where hard links
replace the reference count, it has one name for each live recipient, `SPID-N.msg`, in the same silo. The name tells which of
the two applies, so each mode reads the files of the other.
"""

from __future__ import annotations

import re

from mailismus.mail.ids import SpoolId, format_spool_id, parse_spool_id

SILO_COUNT = 32

SILO_NAMES = tuple(f"{silo:02x}" for silo in range(SILO_COUNT))
"""Names of the directories, `00` to `1f`."""

_NAME = re.compile(r"([0-9A-F]{16})(?:-([1-9][0-9]{0,8}))?\.msg")


def silo_path(root: str, spool_id: SpoolId) -> str:
    """The silo of a message."""
    return f"{root}/{SILO_NAMES[spool_id % SILO_COUNT]}"


def message_path(root: str, spool_id: SpoolId, number: int = 0) -> str:
    """The path of a message file: by its shared name (0), or by the name of recipient `number` alone."""
    suffix = f"-{number}.msg" if number else ".msg"
    return f"{silo_path(root, spool_id)}/{format_spool_id(spool_id)}{suffix}"


def parse_message_name(name: str) -> tuple[SpoolId, int] | None:
    """The message and recipient number of a name in a silo (0: the shared name); None: not a name of ours."""
    found = _NAME.fullmatch(name)
    spool_id = parse_spool_id(found[1]) if found is not None else None
    return (spool_id, int(found[2] or 0)) if found is not None and spool_id is not None else None
