"""Silos: in which of the spool's 32 directories a message file lies (pure).

Spool ids are consecutive, so the remainder fills the silos evenly.
"""

from __future__ import annotations

from mailismus.mail.ids import SpoolId, format_spool_id, parse_spool_id

SILO_COUNT = 32

SILO_NAMES = tuple(f"{silo:02x}" for silo in range(SILO_COUNT))
"""Names of the directories, `00` to `1f`."""

_SUFFIX = ".msg"


def silo_path(root: str, spool_id: SpoolId) -> str:
    """The directory of the message's file."""
    return f"{root}/{SILO_NAMES[spool_id % SILO_COUNT]}"


def message_path(root: str, spool_id: SpoolId) -> str:
    """The path of the message's file."""
    return f"{silo_path(root, spool_id)}/{format_spool_id(spool_id)}{_SUFFIX}"


def spool_id_of(name: str) -> SpoolId | None:
    """The message that a name in a silo is of; None: it is no name of ours."""
    return parse_spool_id(name.removesuffix(_SUFFIX)) if name.endswith(_SUFFIX) else None
