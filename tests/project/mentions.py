"""What texts mention: names of code and paths of files, in backticks, that the tree must have.

Texts are the pages of `docs`, the README and the docstrings. A mention is one of these:

- a dotted name (`queue.outcome.retry.next_attempt_at`, `Reception.add_content`): the end of a module's full name, a class or
  a function, and behind it what is defined there or in a base class, or else a name that Python can import;
- a name in CamelCase or with an underscore: an identifier, or a word of a string, of the sources;
- a path below a folder of the repository, or the name of a source, a page or a unit: the end of a path of the tree.

Other words in backticks (settings, replies, hosts, files of a queue) are no mentions.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import attrs

SOURCES = ("mailismus", "tests", "benchmarks", "twisted")
"""Folders with Python sources."""

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_SINGLE = re.compile(r"_*[A-Za-z]\w*")
_CAMEL = re.compile(r"_*[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+")
_PATH = re.compile(r"\.?[\w.-]+(?:/[\w.-]+)*/?")
_FILE_ENDS = (".py", ".md", ".rst", ".toml", ".rng", ".service", ".cfg")
_OTHER_ENDS = (".example", ".net", ".msg", ".mqj", ".mqc", ".pem", ".log", ".xml", ".ext4", ".xfs")
"""Of hosts in examples, files of a queue, of others."""
_ROOTS = ("mailismus/", "tests/", "benchmarks/", "docs/", "systemd/", ".ci/", "config/")
_QUOTED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_QUOTED_TWICE = re.compile(r"``([^`\n]+)``")


@attrs.frozen
class Tree:
    """What can be mentioned. Keys of `scopes` are modules, classes and functions by their full dotted names."""

    scopes: dict[str, frozenset[str]]
    bases: dict[str, tuple[str, ...]]
    """Base classes of a class, as its definition names them."""
    ends: dict[str, tuple[str, ...]]
    words: frozenset[str]
    paths: frozenset[str]

    def has_name(self, name: str) -> bool:
        """Whether a dotted name leads somewhere, from any module, class or function that it may begin with."""
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            for scope in self.ends.get(".".join(parts[:length]), ()):
                if self._leads_on(scope, parts[length:]):
                    return True
        return False

    def _leads_on(self, scope: str, rest: list[str]) -> bool:
        """Whether the names behind a scope are defined there. An attribute's own attributes need be known anywhere."""
        if not rest:
            return True
        if rest[0] not in self.scopes[scope]:
            bases = (base for name in self.bases.get(scope, ()) for base in self.ends.get(name, ()) if base != scope)
            return any(self._leads_on(base, rest) for base in bases)
        inner = f"{scope}.{rest[0]}"
        return self._leads_on(inner, rest[1:]) if inner in self.scopes else self.words.issuperset(rest[1:])

    def has_path(self, path: str) -> bool:
        """Whether a path is the end of one of the tree."""
        return path.strip("/") in self.paths


def read_tree(root: Path, without: frozenset[str] = frozenset()) -> Tree:
    """The sources and files of a repository. `without`: names of sources whose words prove nothing."""
    scopes: dict[str, set[str]] = {}
    bases: dict[str, tuple[str, ...]] = {}
    words = set(dir(builtins))
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*.py")):
            module = ast.parse(path.read_text(), str(path))
            name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            _add_scopes(name, module, scopes, bases)
            words.update(name.split("."))
            if path.name not in without:
                words |= _words(module)
    for scope in list(scopes):
        package, _, last = scope.rpartition(".")
        if package in scopes:
            scopes[package].add(last)
    ends: dict[str, list[str]] = {}
    for scope in scopes:
        parts = scope.split(".")
        for start in range(len(parts)):
            ends.setdefault(".".join(parts[start:]), []).append(scope)
    return Tree(
        {scope: frozenset(names) for scope, names in scopes.items()},
        bases,
        {end: tuple(found) for end, found in ends.items()},
        frozenset(words),
        frozenset(_path_ends(root)),
    )


def _add_scopes(
    name: str,
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
    scopes: dict[str, set[str]],
    bases: dict[str, tuple[str, ...]],
) -> set[str]:
    """Enter what a module or class defines, and what a function does; attributes that methods set are the class's. Return
    these names."""
    names = scopes.setdefault(name, set())
    if isinstance(node, ast.ClassDef):
        bases[name] = tuple(ast.unparse(base).partition("[")[0] for base in node.bases)
    if not isinstance(node, ast.Module):
        names.add(node.name)
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names |= _add_scopes(f"{name}.{inner.name}", inner, scopes, bases)
            continue
        for child in ast.walk(inner):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                names.add(child.id)
            elif isinstance(child, ast.Attribute):
                names.add(child.attr)
            elif isinstance(child, ast.arg):
                names.add(child.arg)
            elif isinstance(child, ast.alias):
                names.add((child.asname or child.name).split(".")[0])
            elif isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(child.name)
    return names


@cache
def _with_words(fields: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(field for field in ("id", "attr", "arg", "name", "asname", "module") if field in fields)


def _words(module: ast.Module) -> set[str]:
    """Identifiers of a module, and words of its strings but the docstrings."""
    words: set[str] = set()
    texts = {id(node) for node in docstrings(module)}
    for node in ast.walk(module):
        for field in _with_words(node._fields):
            value = getattr(node, field)
            if isinstance(value, str):
                words.update(value.split("."))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            words.update(re.findall(r"\w+", node.value))
    return words


def _path_ends(root: Path) -> Iterator[str]:
    hidden = (".git", ".venv", "var", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache")
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        if not any(part in hidden for part in parts):
            for start in range(len(parts)):
                yield "/".join(parts[start:])


def docstrings(module: ast.Module) -> Iterator[ast.Constant]:
    """Strings that stand alone: docstrings, and what describes the attribute above it."""
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def mentions(text: str) -> Iterator[str]:
    """What a text has in backticks, outside of blocks of code."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    yield from _QUOTED.findall(text)
    yield from _QUOTED_TWICE.findall(text)


def check_text(text: str, tree: Tree, known: frozenset[str]) -> Iterator[str]:
    """Mentions of a text that lead nowhere. `known`: names from outside the tree."""
    for mention in mentions(text):
        name = mention.removesuffix("()").partition("(")[0].split("::")[0]
        if mention not in known and not _is_there(name.removeprefix("python -m "), tree):
            yield mention


def _is_there(name: str, tree: Tree) -> bool:
    if name.endswith(_OTHER_ENDS) and "/" not in name:
        return True
    if _PATH.fullmatch(name) and (name.endswith(_FILE_ENDS) or name.startswith(_ROOTS)):
        return any(tree.has_path(name + end) for end in ("", ".py", ".md"))
    if _DOTTED.fullmatch(name):
        return tree.has_name(name) or _can_be_imported(name)
    if _SINGLE.fullmatch(name):
        return name in tree.words
    return True


def _can_be_imported(name: str) -> bool:
    """Whether a dotted name is one of an installed package: a module, or what is in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        if not _is_module(module):
            continue
        if length == len(parts):
            return True
        found: object = importlib.import_module(module)
        for part in parts[length:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
