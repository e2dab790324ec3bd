"""The import rule holds in the tree, and each part of it can fail."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.project import rules
from tests.project.rules import Sources

DIRECTORY = Path(__file__).parents[2] / rules.ROOT
RULES = [
    *(rules.check_levels, rules.check_rooms, rules.check_map, rules.check_cycles, rules.check_loader),
    *(rules.check_purity, rules.check_reactor, rules.check_files, rules.check_names),
    rules.check_providers,
    *(rules.check_constructors, rules.check_foreign_writes),
]


@pytest.fixture(scope="module")
def sources() -> Sources:
    return rules.read_sources(DIRECTORY)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule: Callable[[Sources], Iterator[str]], sources: Sources) -> None:
    assert list(rule(sources)) == []


@pytest.mark.parametrize(
    ("rule", "name", "text"),
    [
        (rules.check_levels, "mail.address", "from mailismus.smtp import server"),
        (rules.check_levels, "disk.posix", "import mailismus.net.peer"),
        (rules.check_levels, "submit.task", "from mailismus.deliver.task import DeliverTask"),
        (rules.check_levels, "admin.server.answers", "def f():\n    from mailismus.report import task"),
        (rules.check_levels, "queue.manager", "from mailismus.queue.providers.clustered import provider"),
        (rules.check_levels, "queue.providers.memory.x", "from mailismus.queue.providers.clustered.y import z"),
        (rules.check_levels, "journal.batch", "from mailismus.app import build"),
        (rules.check_levels, "novelty.thing", ""),
        (rules.check_rooms, "config.values.units", "from mailismus.config.read import load"),
        (rules.check_rooms, "config.table.kinds", "from mailismus.config.read.load import load"),
        (rules.check_rooms, "queue.interface", "from mailismus.queue.files import recipient_line"),
        (rules.check_rooms, "queue.files.free_space", "import mailismus.queue.manager"),
        (rules.check_rooms, "queue.providers.clustered.read.x", "from mailismus.queue.providers.clustered import provider"),
        (rules.check_rooms, "queue.providers.clustered.provider", "from mailismus.queue.providers.clustered.fsck import x"),
        (
            rules.check_map,
            "admin",
            '"""M.\n\n    protocol  x\n    model     x\n    render  x\n    server  x\n    client  x\n    commands  x"""',
        ),
        (rules.check_cycles, "mail.reply", "from mailismus.mail.reply import Reply\nfrom mailismus.mail import reply"),
        (rules.check_loader, "deliver.task", "from mailismus.config.read.load import load"),
        (rules.check_loader, "submit.task", "from mailismus.config import table"),
        (rules.check_purity, "mail.reply", "import time"),
        (rules.check_purity, "smtp.server", "from twisted.internet import defer"),
        (rules.check_purity, "queue.outcome.retry", "from random import random"),
        (rules.check_purity, "config.values.units", "import os.path"),
        (rules.check_levels, "start.maker", "from mailismus.providers import PROVIDERS"),
        (rules.check_levels, "admin.commands.fsck", "import mailismus.providers"),
        (rules.check_providers, "app", "from mailismus.queue.providers.clustered.provider import ClusteredQueue"),
        (rules.check_providers, "__main__", "def f():\n    import mailismus.queue.providers.clustered.entry"),
        (rules.check_providers, "start.observation", "from mailismus.queue.providers.clustered import metrics"),
        (rules.check_providers, "queue.providers.log.x", "from mailismus.queue.providers.clustered.format import cluster"),
        (rules.check_providers, "run", "import_module('mailismus.queue.providers.clustered.entry')"),
        (rules.check_reactor, "net.peer", "from twisted.internet import reactor"),
        (rules.check_reactor, "app", "import twisted.internet.reactor"),
        (rules.check_names, "journal.writer", "class A: ...\nclass A: ..."),
        (rules.check_names, "journal.writer", "def has_written(self) -> None: ..."),
        (rules.check_constructors, "journal.writer", "class A:\n def __init__(self): B(self)"),
        (rules.check_constructors, "journal.writer", "class A:\n def __init__(self): B(on=self.f)\n def f(self): ..."),
        (rules.check_constructors, "journal.writer", "class A:\n def __init__(self): self.b = B(lambda: self.c)"),
        (rules.check_constructors, "journal.writer", "class A:\n def __init__(self):\n  def f(): self.c()\n  B(f)"),
        (rules.check_foreign_writes, "journal.batch", "def f(a): a.b = 1"),
        (rules.check_foreign_writes, "journal.batch", "def f(self): self.a.b += 1"),
        (rules.check_foreign_writes, "journal.batch", "def f(a):\n c, a.b = 1, 2"),
        (rules.check_foreign_writes, "journal.batch", "def f(a):\n b = C() if a else a\n b.d = 1"),
        (rules.check_foreign_writes, "journal.batch", "def f(a):\n b = c(a)\n del b.d"),
        (rules.check_files, "journal.writer", "x = open('y', 'wb')"),
        (rules.check_files, "spool.sweep", "import os\nos.unlink('y')"),
        (rules.check_files, "queue.manager", "from pathlib import Path"),
    ],
)
def test_each_rule_can_fail(rule: Callable[[Sources], Iterator[str]], name: str, text: str) -> None:
    assert len(list(rule({name: ast.parse(text)}))) == 1


def test_a_module_without_a_line_in_its_package_s_map_is_found() -> None:
    tree = {"mail": ast.parse('"""M.\n\n    reply   x\n"""'), "mail.reply": ast.parse(""), "mail.other": ast.parse("")}
    assert list(rules.check_map(tree)) == ["the map of mail has no line for other"]


def test_every_exemption_is_still_needed(sources: Sources) -> None:
    for (name, first), _reason in rules.PURE_EXEMPT.items():
        assert any(imported.partition(".")[0] == first for _, imported in rules.imports_of(sources[name]))


def test_what_a_function_makes_is_its_own() -> None:
    own = ast.parse("class _A:\n b: int\ndef f(a):\n a.b = 1\n c = C()\n c.d = 1\nclass E:\n def g(self): self.h = 1")
    assert list(rules.check_foreign_writes({"journal.batch": own})) == []


def test_every_constructor_that_may_hand_its_object_out_does_so(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = dict(rules.HANDED_OUT)
    monkeypatch.setattr(rules, "HANDED_OUT", {})
    found = list(rules.check_constructors(sources))
    for name in listed:
        module, _, owner = name.rpartition(".")
        assert any(said.startswith(f"{module}:") and f" of {owner} " in said for said in found), name


def test_every_attribute_that_a_module_may_set_of_others_is_set_there(sources: Sources) -> None:
    for name, (attributes, _reason) in rules.FOREIGN_WRITES.items():
        functions = [n for n in ast.walk(sources[name]) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        written = {attribute for function in functions for _, attribute in rules.foreign_writes(function)}
        assert set(attributes.split()) <= written, name


def test_every_module_that_may_touch_files_is_there(sources: Sources) -> None:
    assert [name for name in rules.FILE_USERS if name not in sources] == []


def test_every_pure_module_that_is_named_exists(sources: Sources) -> None:
    assert [name for name in rules.PURE if name not in sources] == []
