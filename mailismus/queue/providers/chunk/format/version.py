"""Name, format and directories of the provider."""

from __future__ import annotations

from mailismus.queue.files.ownership import Ownership

NAME = "chunk"
FORMATS = (1, 2)
"""What this version reads. 2: with the areas of acts."""

PID, INTD, TODO, BOUNCE, IDS = "pid", "intd", "todo", "bounce", "ids"
"""Directories without parts. `ids`: the epochs of spool ids."""

MESS, INFO, LOCAL, REMOTE = "mess", "info", "local", "remote"
SPLIT_DIRECTORIES = (MESS, INFO, LOCAL, REMOTE)
"""Directories in parts: the file N lies in the part N modulo the number of parts."""

PLAIN_DIRECTORIES = (PID, INTD, TODO, BOUNCE, IDS, "corrupt", "state")

SPLIT_FILE = "conf-split"
"""The number of parts that the directories of this queue have."""

DUE_FILE = "due-times"
"""When messages are due, as it was some time ago: which of them a start reads first."""
NEW_DUE_FILE = f"{DUE_FILE}.new"

TRIGGER = "trigger"
"""The named pipe by which other writers tell the server of new messages."""

OWNERSHIP = Ownership(NAME, FORMATS, (PID, INTD, TODO, MESS))


def parse_number(name: str) -> int | None:
    """The number in the name of a file of the queue; None: it is no such name."""
    if name.isascii() and name.isdigit() and name[0] != "0" and len(name) < 21:
        return int(name)
    return None
