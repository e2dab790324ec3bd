"""The private names of Twisted and of the standard library that the sources use: each is listed here, and is there.

A private name may change in any release. So Twisted has an upper bound in pyproject.toml, and what the names mean is
tested where they are used, with the newest release that the bound allows (`.ci/run` installs into a fresh environment).
"""

from __future__ import annotations

import argparse
import ast
import re
import socket
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
from twisted.internet.epollreactor import EPollReactor
from twisted.internet.protocol import Protocol
from twisted.internet.tcp import Connection
from twisted.protocols.tls import TLSMemoryBIOProtocol

from tests.project import rules
from tests.project.runners import ROOT

CHECKED = ("26.4.0", "26.10.0")
"""Releases of Twisted with which the tests of sockets, delivery and starts passed: the oldest that the bound allows, and the
newest at that time."""

UNDERSCORED: dict[type, frozenset[str]] = {
    EPollReactor: frozenset({"_poller", "_selectables", "_doReadOrWrite", "_disconnectSelectable"}),
    Connection: frozenset({"_tempDataBuffer"}),
    TLSMemoryBIOProtocol: frozenset({"_lostTLSConnection"}),
    argparse.ArgumentParser: frozenset({"_actions"}),
    argparse._SubParsersAction: frozenset({"_choices_actions"}),
}
"""Private by their underscore. `argparse` has no bound: the newest Python of the machine runs these tests too."""

PUBLIC_BY_NAME: dict[type, frozenset[str]] = {
    EPollReactor: frozenset({"doIteration", "threadCallQueue", "wakeUp"}),
    Connection: frozenset(
        {"TLS", "connected", "dataBuffer", "disconnecting", "producer", "protocol", "socket", "connectionLost"}
    ),
    TLSMemoryBIOProtocol: frozenset({"wrappedProtocol", "getHandle", "abortConnection"}),
}
"""No underscore, but no documented interface either."""

INHERITED: dict[type, frozenset[str]] = {argparse.ArgumentParser: frozenset({"_subparsers"})}
"""Used on `self` in a class of ours, where they look like names of ours."""

OF_MODULES = frozenset({("argparse", "_SubParsersAction"), ("os", "_exit"), ("lxml.etree", "_Element")})
"""Names of modules. `os._exit` is documented; `_Element` is the only name that lxml has for the type of its elements, and
stands in annotations alone."""


def foreign_names(sources: rules.Sources) -> set[str]:
    """Underscored attributes that are used and not ours.

    Ours are in snake_case (Twisted's are camelCase) and belong to `self` or `cls`, or to a function or class of ours.
    """
    nodes = [node for tree in sources.values() for node in ast.walk(tree)]
    ours = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    found = set()
    for node in nodes:
        if not isinstance(node, ast.Attribute) or not re.match(r"_[a-zA-Z]", node.attr):
            continue
        of_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        if node.attr != node.attr.lower() or not (of_self or node.attr in ours):
            found.add(node.attr)
    return found


def private_imports(sources: rules.Sources) -> Iterator[str]:
    """Imports of private modules or names that are not ours."""
    for name, tree in sources.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                imported = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            else:
                continue
            for path in imported:
                if path.partition(".")[0] not in (rules.ROOT, "__future__") and re.search(r"(^|\.)_[a-z]", path):
                    yield f"{name}: {path}"


@pytest.fixture(scope="module")
def sources() -> rules.Sources:
    return rules.read_sources(ROOT / rules.ROOT)


def test_every_private_name_that_the_sources_use_is_listed(sources: rules.Sources) -> None:
    listed = {name for names in UNDERSCORED.values() for name in names} | {name for _, name in OF_MODULES}
    assert foreign_names(sources) == listed


def test_no_private_module_is_imported(sources: rules.Sources) -> None:
    assert list(private_imports(sources)) == []


def test_a_name_and_an_import_that_are_not_listed_are_seen() -> None:
    tree = ast.parse("from twisted.internet._newtls import x\nself._mine = transport._secret\nself._realPortNumber = 1")
    assert foreign_names({"x": tree}) == {"_secret", "_realPortNumber"}
    assert list(private_imports({"x": tree})) == ["x: twisted.internet._newtls.x"]


def test_this_twisted_has_each_name() -> None:
    reactor: Any = EPollReactor()  # type: ignore[no-untyped-call]  # its methods are not annotated
    near, far = socket.socketpair()
    connection = Connection(near, Protocol(), reactor)
    instances: dict[type, object] = {
        EPollReactor: reactor,
        Connection: connection,
        TLSMemoryBIOProtocol: TLSMemoryBIOProtocol,
        argparse.ArgumentParser: argparse.ArgumentParser(),
        argparse._SubParsersAction: argparse.ArgumentParser().add_subparsers(),
    }
    of_instances_alone = {"wrappedProtocol"}
    try:
        for table in (UNDERSCORED, PUBLIC_BY_NAME, INHERITED):
            for owner, names in table.items():
                missing = {name for name in names - of_instances_alone if not hasattr(instances[owner], name)}
                assert missing == set(), f"{owner.__name__} of Twisted {version('Twisted')}"
    finally:
        for descriptor in [*reactor.removeAll(), near, far]:
            if isinstance(descriptor, socket.socket):
                descriptor.close()
        reactor._poller.close()


def test_the_bound_admits_the_releases_that_were_checked_and_no_later_year() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (bound,) = [found for found in project["dependencies"] if found.startswith("Twisted")]
    oldest, newest = ([int(part) for part in release.split(".")] for release in (CHECKED[0], CHECKED[-1]))
    assert bound == f"Twisted>={oldest[0]}.{oldest[1]},<{newest[0] + 1}"
    installed = [int(part) for part in re.findall(r"\d+", version("Twisted"))[:2]]
    assert oldest[:2] <= installed < [newest[0] + 1]
