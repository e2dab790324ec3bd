"""Mutants: the list of what can be left out, or done in another order, made from the source itself.

Of the packages whose promises are proved here a mutant is each
- *barrier*: a call of `sync`, `sync_directory`, `sync_file_system` or `sync_together` is left out;
- *cover*: a file or directory is not noted for a barrier that covers several;
- *order*: two statements that change the disk, or sync it, or hand something to the journal, change places: one behind the
  other, whatever stands between them;
- *check*: one reason to refuse bytes that were read, or to act on them, is left out;
- *rule*: one of `tests.durability.mutation.rules`, which no call tells of.

So whatever is added to the source is a new mutant.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import attrs

from tests.durability.mutation.rules import RULES

ROOT = Path(__file__).parents[3]

PACKAGES = {
    "clustered": (
        "mailismus/journal",
        "mailismus/queue/entering.py",
        "mailismus/queue/files",
        "mailismus/queue/fsck",
        "mailismus/queue/providers/clustered",
        "mailismus/spool",
    ),
    "log": ("mailismus/queue/providers/log",),
    "chunk": ("mailismus/chunks", "mailismus/queue/providers/chunk"),
    "distributed": ("mailismus/queue/providers/distributed",),
    "naive": ("tests/naive",),
    "maildir": ("mailismus/chunks", "mailismus/maildir"),
    "convert": ("mailismus/queue/convert",),
    "acts": (
        "mailismus/queue/acting.py",
        "mailismus/queue/acts",
        "mailismus/queue/arriving.py",
        "mailismus/queue/coming_back.py",
        "mailismus/queue/redirect.py",
    ),
}
"""Of each provider, where its promises are kept. What providers share stands with the first. Maildirs are no provider, and
judged as one."""

RULES_ALONE = ("distributed",)
"""Providers without files: their mutants are rules."""

LOOKING = ("dump.py", "offline.py", "search.py")
"""Files that change nothing on a disk."""

REPAIRING = ("actions.py", "executor.py", "files.py", "quarantine.py")
"""Of `fsck` those that do."""

BARRIERS = frozenset(("sync", "sync_directory", "sync_file_system", "sync_together"))
CHANGES = frozenset(
    ("write_at", "truncate", "make_directory", "remove_directory", "create", "link", "rename", "rename_new", "unlink")
)
COVERS = frozenset(("files", "directories", "barrier"))
NOTES = frozenset(("add", "add_directory"))

READERS = (
    "mailismus/chunks/access.py",
    "mailismus/chunks/handler.py",
    "mailismus/maildir/boots.py",
    "mailismus/maildir/maildirsize.py",
    "mailismus/maildir/quota.py",
    "mailismus/maildir/sweep.py",
    "mailismus/journal/batch.py",
    "mailismus/journal/load.py",
    "mailismus/journal/replay.py",
    "mailismus/queue/providers/clustered/format/cluster.py",
    "mailismus/queue/acts/record.py",
    "mailismus/queue/files/mark.py",
    "mailismus/queue/files/recipient_line.py",
    "mailismus/queue/providers/clustered/format/record.py",
    "mailismus/queue/providers/clustered/recovery/salvage.py",
    "mailismus/queue/providers/clustered/recovery/replay.py",
    "mailismus/queue/providers/log/format/positions.py",
    "mailismus/queue/providers/log/format/record.py",
    "mailismus/queue/providers/log/read/envelopes.py",
    "mailismus/queue/providers/log/recovery/found.py",
    "mailismus/queue/providers/log/recovery/replay.py",
    "mailismus/queue/providers/chunk/format/files.py",
    "mailismus/queue/providers/chunk/format/line.py",
    "mailismus/queue/providers/chunk/format/states.py",
    "mailismus/queue/providers/chunk/recovery/found.py",
    "mailismus/spool/message_file.py",
)
"""Where bytes that come from a disk are judged."""

_ORDINARY = frozenset(
    ("append", "add", "remove", "pop", "discard", "run", "close", "open", "begin", "take", "start", "act", "next", "read")
)
"""Names that say too little of what is called."""

_APPENDS = frozenset(
    ("append", of) for of in ("writer", "_writer", "commit", "_commit", "commits", "_commits", "file", "_file")
)
"""Where `append` writes, or hands on to be written."""
_APPEND = "append there"

_CALLBACKS = frozenset(("_on_batch",))
"""Callbacks under whose names nothing is defined, and which hand something to the journal."""

_MEMORY = frozenset(
    (
        *("young", "_young", "index", "_index", "resting", "_resting", "references", "_references", "walk"),
        *("memtable", "_memtable", "cluster_index", "_cluster_index"),
    )
)
"""Whose methods change memory alone, whatever others do that are called the same."""


_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


class Kind(enum.Enum):
    """What is done to the source."""

    BARRIER = "barrier"
    COVER = "cover"
    ORDER = "order"
    RULE = "rule"
    CHECK = "check"


@attrs.frozen
class Mutant:
    """One change. `number`: of those that are called the same, from 1 on."""

    kind: Kind
    path: str
    function: str
    text: str
    number: int = 1

    @property
    def name(self) -> str:
        """For life, as long as the source there is the same."""
        number = f" #{self.number}" if self.number > 1 else ""
        where = self.path.removeprefix("mailismus/").removeprefix("queue/providers/")
        return " | ".join(filter(None, (self.kind.value, where, self.function, self.text + number)))

    @property
    def module(self) -> str:
        """The dotted name of what is changed."""
        return module_of(self.path)


def module_of(path: str) -> str:
    """The dotted name of a file of the source."""
    return path.removesuffix(".py").replace("/", ".")


@attrs.frozen(eq=False)
class _Place:
    """Where a mutant is in a tree of syntax: a call; a condition, and its answer then; a body, and of which two the places
    change."""

    mutant: Mutant
    node: ast.AST
    answer: bool = False
    body: list[ast.stmt] = attrs.field(factory=list)
    first: int = 0
    second: int = 0


def sources(provider: str = "clustered", root: Path = ROOT) -> dict[str, str]:
    """The files of a provider's packages and modules."""
    places = [root / place for place in PACKAGES[provider]]
    modules = [path for place in places for path in ([place] if place.is_file() else place.rglob("*.py"))]
    paths = sorted(path for path in modules if path.name not in LOOKING)
    paths = [path for path in paths if "fsck" not in path.parts or path.name in REPAIRING]
    return {str(path.relative_to(root)): path.read_text() for path in paths}


def find(files: dict[str, str]) -> list[Mutant]:
    """By kind, in the order of the source; those of `fsck` last."""
    touching = _functions_that_touch(tuple(files.values()))
    found = [place.mutant for path, source in files.items() for place in _places(path, ast.parse(source), touching)]
    found += [Mutant(Kind.RULE, rule.path, "", name) for name, rule in RULES.items() if rule.path in files]
    return sorted(found, key=lambda mutant: ("/fsck/" in mutant.path, list(Kind).index(mutant.kind)))


def changed(mutant: Mutant, files: dict[str, str]) -> ast.Module:
    """The syntax of its module with the change in it. Raises `ValueError` for one that is not there (any more)."""
    if mutant.kind is Kind.RULE:
        return RULES[mutant.text].change(files)
    tree = ast.parse(files[mutant.path])
    for place in _places(mutant.path, tree, _functions_that_touch(tuple(files.values()))):
        if place.mutant == mutant:
            if mutant.kind is Kind.ORDER:
                _exchange(place.body, place.first, place.second)
            else:
                _Replace(place.node, _instead(place)).visit(tree)
                ast.fix_missing_locations(tree)
            return tree
    raise ValueError(f"no such mutant: {mutant.name}")


def _instead(place: _Place) -> ast.expr:
    if place.mutant.kind is Kind.COVER:
        assert isinstance(place.node, ast.Call)
        return place.node.args[0]
    return ast.Constant(value=place.answer if place.mutant.kind is Kind.CHECK else None)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.expr) -> None:
        self._old = old
        self._new = new

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._old:
            return ast.copy_location(self._new, node)
        visited: ast.AST = super().visit(node)
        return visited


def _exchange(body: list[ast.stmt], first: int, second: int) -> None:
    """The second goes before the first, if it can; else the first behind the second."""
    if _can_go_before(body, first, second):
        body.insert(first, body.pop(second))
    else:
        body.insert(second, body.pop(first))


def _only_prepares(node: ast.stmt) -> bool:
    """Whether it keeps its place, for it does nothing yet, or ends it all."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _last_name(node.value.func) == "partial":
        return True
    return isinstance(node, ast.Return | ast.Raise | ast.FunctionDef)


def _returns(node: ast.AST) -> bool:
    """Whether it may be the end of the function: then what comes behind it is another case, not something later."""
    return any(isinstance(inner, ast.Return) for inner in ast.walk(node))


def _can_go_before(body: list[ast.stmt], first: int, second: int) -> bool:
    return not _reads(body[second]) & set().union(*map(_binds, body[first:second]))


def _can_go_behind(body: list[ast.stmt], first: int, second: int) -> bool:
    return not _binds(body[first]) & set().union(*map(_reads, body[first + 1 : second + 1]))


def _places(path: str, tree: ast.Module, touching: frozenset[str]) -> Iterator[_Place]:
    counts: dict[tuple[Kind, str, str], int] = {}
    for function, found in _found(path, tree, touching):
        text = _text(found.node)
        if found.kind is Kind.ORDER:
            text += f" <> {_text(found.body[found.second])}"
        key = found.kind, function, text
        counts[key] = counts.get(key, 0) + 1
        mutant = Mutant(found.kind, path, function, text, counts[key])
        yield _Place(mutant, found.node, found.answer, found.body, found.first, found.second)


def _text(node: ast.AST) -> str:
    line = ast.unparse(node).split("\n")[0]
    return line if len(line) <= 90 else line[:88] + ".."


class _Found(NamedTuple):
    kind: Kind
    node: ast.AST
    answer: bool = False
    body: list[ast.stmt] = []
    first: int = 0
    second: int = 0


def _found(path: str, tree: ast.Module, touching: frozenset[str]) -> Iterator[tuple[str, _Found]]:
    for owner, name, definition in _functions(tree):
        function = f"{owner.name}.{name}" if owner.name else name
        for node in _own_nodes(definition):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in BARRIERS:
                    yield function, _Found(Kind.BARRIER, node)
                elif _last_name(node.func.value) in COVERS and node.func.attr in NOTES:
                    yield function, _Found(Kind.COVER, node)
            if path in READERS:
                for reason, answer in _reasons(node):
                    yield function, _Found(Kind.CHECK, reason, answer)
            for part in ("body", "orelse", "finalbody"):
                body = getattr(node, part, None)
                if isinstance(body, list) and name != "__init__":
                    for first, second in _orders(body, touching, owner):
                        yield function, _Found(Kind.ORDER, body[first], False, body, first, second)


def _orders(body: list[ast.stmt], touching: frozenset[str], owner: _Owner) -> Iterator[tuple[int, int]]:
    """Each two of those that touch the disk, one behind the other, that can change places."""
    touches = [at for at, each in enumerate(body) if _called(each, owner) & touching and not _only_prepares(each)]
    for first, second in pairwise(touches):
        if ast.dump(body[first]) == ast.dump(body[second]) or any(map(_returns, (body[first], body[second]))):
            continue
        if _can_go_before(body, first, second) or _can_go_behind(body, first, second):
            yield first, second


def _functions(tree: ast.Module) -> Iterator[tuple[_Owner, str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in tree.body:
        if isinstance(node, _FUNCTION):
            yield _Owner(), node.name, node
        elif isinstance(node, ast.ClassDef):
            methods = [inner for inner in node.body if isinstance(inner, _FUNCTION)]
            owner = _Owner(node.name, frozenset(method.name for method in methods))
            yield from ((owner, method.name, method) for method in methods)


def _own_nodes(definition: ast.AST) -> Iterator[ast.AST]:
    """In the order of the source."""
    yield definition
    for child in ast.iter_child_nodes(definition):
        yield from _own_nodes(child)


@attrs.frozen
class _Owner:
    """The class that a piece of source is in (or none), and its methods: what `self.f` means there."""

    name: str = ""
    methods: frozenset[str] = frozenset()

    def meant(self, called: ast.AST) -> str:
        """A name in the set of functions that touch."""
        name = _last_name(called)
        if isinstance(called, ast.Name):
            return f".{name}"
        if isinstance(called, ast.Attribute) and _last_name(called.value) == "self" and name in self.methods:
            return f"{self.name}.{name}"
        return name


@cache
def _functions_that_touch(files: tuple[str, ...]) -> frozenset[str]:
    """Functions that change or sync the disk, themselves or by others: `.f` of a module, `C.f` of a class, `f` for all that
    are called so."""
    called = [
        (owner, name, _called(node, owner))
        for source in files
        for owner, name, node in _functions(ast.parse(source))
        if not name.startswith("__")
    ]
    names = BARRIERS | CHANGES | _CALLBACKS | {_APPEND}
    while True:
        more: set[str] = set()
        for owner, name, inside in called:
            if inside & names:
                more.add(f"{owner.name}.{name}")
                if name not in _ORDINARY:
                    more.add(name)
        if more <= names:
            return frozenset(names)
        names |= more


def _called(node: ast.AST, owner: _Owner) -> set[str]:
    """What is called there, or handed on to be called."""
    names: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            what, of = _last_name(inner.func), _last_name(getattr(inner.func, "value", inner))
            if of not in _MEMORY:
                names.add(owner.meant(inner.func))
            if what != "callLater":
                names.update(
                    owner.meant(each) for each in inner.args if isinstance(each, ast.Attribute) or what == "partial"
                )
            if (what, of) in _APPENDS:
                names.add(_APPEND)
    return names


def _last_name(node: ast.AST) -> str:
    """Of `a.b.c` the last part."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _binds(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}


def _reads(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)}


def _reasons(node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """What can be left out of a condition, one at a time, and what it answers then."""
    if isinstance(node, ast.If):
        if _refuses(node.body):
            yield from ((reason, False) for reason in _parts(node.test, ast.Or))
        elif _acts(node.body):
            yield from ((reason, True) for reason in _parts(node.test, ast.And) if not _is_guard(reason))
    elif isinstance(node, ast.comprehension):
        yield from ((reason, True) for test in node.ifs for reason in _parts(test, ast.And) if not _is_guard(reason))
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.BoolOp):
        answer = isinstance(node.value.op, ast.And)
        yield from ((reason, answer) for reason in node.value.values if not _is_guard(reason))


def _refuses(body: list[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.If):
        return _refuses(last.body)
    if isinstance(last, ast.Return):
        return last.value is None or (isinstance(last.value, ast.Constant) and last.value.value in (None, False))
    return isinstance(last, ast.Raise | ast.Break | ast.Continue)


def _is_guard(test: ast.expr) -> bool:
    """Whether a name is None: without that what comes next would fail outright."""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.Is | ast.IsNot)
        and isinstance(test.left, ast.Name | ast.Attribute)
        and isinstance(test.comparators[0], ast.Constant)
    )


def _acts(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Expr | ast.Assign | ast.AugAssign)


def _parts(test: ast.expr, operator: type[ast.boolop]) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, operator) else [test]
