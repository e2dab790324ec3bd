"""Name, format and directories of the provider."""

from __future__ import annotations

from mailismus.queue.files.ownership import Ownership

NAME = "distributed"
FORMATS = (2,)
"""What this version reads. There never was a lower one: 2 is the number that all providers have for the areas of acts."""
SERVER, STATE = "server", "state"
"""Directories: the name of this server; state files."""
OWNERSHIP = Ownership(NAME, FORMATS, (SERVER,))
