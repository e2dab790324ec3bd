"""The version of the program, as installed."""

from __future__ import annotations


def program_version() -> str:
    """The version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version  # here: they take longer than most commands need

    try:
        return version("mailismus")
    except PackageNotFoundError:
        return "(not installed)"
