"""Mutants that no test can tell from the source, and why: by name. Everything else must be caught."""

from __future__ import annotations

NEEDLESS: dict[str, str] = {}
