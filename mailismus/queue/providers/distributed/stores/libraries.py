"""The packages that the clients need. They come with the extra `distributed`, and are imported by these clients alone."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any

from mailismus.errors import StartError

PACKAGES = {"pika": "pika", "cassandra": "cassandra-driver"}
"""Modules, and the packages that have them."""
_LOADED = (
    *(("pika",), ("pika", "adapters", "twisted_connection")),
    *(("cassandra", module) for module in ("cluster", "policies", "query", "auth", "protocol")),
)


def missing_packages() -> list[str]:
    """Names of packages that are not installed."""
    return [package for module, package in PACKAGES.items() if importlib.util.find_spec(module) is None]


def advice() -> str:
    """What is missing, and how to install it; empty: nothing."""
    names = " and ".join(missing_packages())
    return names and f"provider distributed needs {names}, not installed here: pip install 'mailismus[distributed]'"


def require_packages() -> None:
    """Raise `StartError` (78) unless all packages are there."""
    text = advice()
    if text:
        raise StartError(os.EX_CONFIG, text, "mta/queue/@provider")


def load_all() -> None:
    """Import all that the clients need, as far as it is installed: the driver of the database begins no thread by that."""
    for names in _LOADED:
        if importlib.util.find_spec(names[0]) is not None:
            importlib.import_module(".".join(names))


def load(*names: str) -> Any:
    """A module of a package, by the names that lead to it. Raises `StartError` as `require_packages`. Any: they are
    not typed."""
    try:
        return importlib.import_module(".".join(names))
    except ModuleNotFoundError:
        require_packages()
        raise
