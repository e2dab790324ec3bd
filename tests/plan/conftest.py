"""The world of each test of the command, and a server in it where it is asked for: those of `tests.admin`."""

from __future__ import annotations

from tests.admin.conftest import running, world

__all__ = ("running", "world")
