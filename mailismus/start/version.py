"""The version of the program, as installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def program_version() -> str:
    """The version of the installed package."""
    try:
        return version("mailismus")
    except PackageNotFoundError:
        return "(not installed)"
