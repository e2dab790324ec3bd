"""A mutant in memory: its module is compiled from changed syntax when it is imported. So are modules that tell what of them
is run."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, ModuleType

from tests.durability.mutation.mutants import ROOT, Mutant, changed, module_of, sources
from tests.durability.mutation.reach import key_of, named_functions

_NOTE = "__note_reach__"
"""Under this name functions find whom they tell that they begin."""


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, tree: ast.Module, names: Mapping[str, object]) -> None:
        super().__init__(name, path)
        self._tree, self._names = tree, names

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self._names)
        super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._tree, self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, trees: Mapping[str, tuple[str, ast.Module]], names: Mapping[str, object]) -> None:
        """`trees`: path and syntax of each module by its name. `names`: what each of them has beside its own names."""
        self._trees, self._names = trees, names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._trees:
            return None
        where, tree = self._trees[fullname]
        return importlib.machinery.ModuleSpec(fullname, _Loader(fullname, where, tree, self._names), origin=where)


def install(mutant: Mutant, provider: str = "clustered") -> None:
    """From now on its module is the changed one. Raises `ValueError` if it is imported already."""
    tree = changed(mutant, sources(provider))
    _install({mutant.module: (str(ROOT / mutant.path), tree)}, {})


def install_notes(provider: str, note: Callable[[str], object]) -> None:
    """From now on each function of a provider's sources calls `note` with what it is called (`reach.key_of`) when it
    begins. Raises `ValueError` if one of these modules is imported already."""
    trees = {}
    for path, source in sources(provider).items():
        tree = ast.parse(source)
        for name, node in named_functions(tree):
            call = ast.Call(ast.Name(_NOTE, ast.Load()), [ast.Constant(key_of(path, name))], [])
            node.body.insert(1 if ast.get_docstring(node) is not None else 0, ast.Expr(call))
        trees[module_of(path)] = str(ROOT / path), ast.fix_missing_locations(tree)
    _install(trees, {_NOTE: note})


def _install(trees: Mapping[str, tuple[str, ast.Module]], names: Mapping[str, object]) -> None:
    for name in trees:
        if name in sys.modules:
            raise ValueError(f"{name} is imported already")
    sys.meta_path.insert(0, _Finder(trees, names))
