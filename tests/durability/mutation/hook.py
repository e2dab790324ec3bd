"""A mutant in memory: its module is compiled from changed syntax when it is imported."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType

from tests.durability.mutation.mutants import ROOT, Mutant, changed, sources


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        super().__init__(name, path)
        self._tree = tree

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._tree, self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutant: Mutant, provider: str) -> None:
        self._name = mutant.module
        self._path = str(ROOT / mutant.path)
        self._tree = changed(mutant, sources(provider))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(fullname, self._path, self._tree), origin=self._path)


def install(mutant: Mutant, provider: str = "clustered") -> None:
    """From now on its module is the changed one. Raises `ValueError` if it is imported already."""
    if mutant.module in sys.modules:
        raise ValueError(f"{mutant.module} is imported already")
    sys.meta_path.insert(0, _Finder(mutant, provider))
