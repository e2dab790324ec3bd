"""A rule: a piece of source that keeps it, and the change that breaks it."""

from __future__ import annotations

import ast

import attrs


@attrs.frozen
class Rule:
    """In the file of this path `old` becomes `new`."""

    path: str
    old: str
    new: str

    def change(self, files: dict[str, str]) -> ast.Module:
        """The syntax of the file with the change in it. Raises `ValueError` where `old` is not there once."""
        source = files[self.path]
        if source.count(self.old) != 1:
            raise ValueError(f"{self.path}: not there once: {self.old!r}")
        return ast.parse(source.replace(self.old, self.new))
