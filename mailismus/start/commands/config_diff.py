"""The command `mailismus config diff`: the file against the running server, or against another file.

*Rules*: every setting in force is compared, written or not, as the files ask for it; a limit that gave way to the open-file
limit is no difference. Of files that a configuration names it is only said that their content differs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

import attrs

from mailismus.admin.client.server import need_server
from mailismus.config.read.changes import SettingChange, what_changed
from mailismus.config.read.load import find_file, load
from mailismus.config.values.effective import Effective
from mailismus.start.exits import Exit, one_line

DIFFERENT = 1
"""Exit code where they differ."""
_SERVER = "the running server"


def run_diff(arguments: argparse.Namespace) -> int:
    """`config diff [OTHER]`."""
    file = find_file(arguments.config)
    loaded = load(file)
    if arguments.other is None:
        other, name = _ask_server(loaded.settings.admin.socket_path), _SERVER
    else:
        other, name = load(arguments.other).effective, arguments.other
    changes = what_changed(_as_asked(other), _as_asked(loaded.effective))
    lines = {value.place: value.line for value in other} if arguments.other is not None else {}
    for change in changes:
        print(one_line(f"{change.path}: {_describe(change, file, name, lines.get(change.place, 0))}"))
    if not changes:
        print(one_line(f"{file}: {name} has the same settings"))
    return DIFFERENT if changes else Exit.OK


def _ask_server(socket_path: str) -> Sequence[Effective]:
    source = need_server(socket_path, _count_nothing)
    try:
        return source.settings()
    finally:
        source.close()


def _count_nothing(provider: str) -> NoReturn:
    raise AssertionError("only settings are asked for")


def _as_asked(values: Sequence[Effective]) -> list[Effective]:
    return [attrs.evolve(value, text=value.asked) for value in values]


def _describe(change: SettingChange, file: str, name: str, line: int) -> str:
    if change.old == change.new:
        return f"the file that it names holds something else than for {name}"
    here = f"{file}:{change.line}" if change.line else f"{file} (default)" if change.new is not None else file
    there = f"{name}:{line}" if line else name
    restart = ", restart needed" if change.is_fixed and name == _SERVER else ""
    return f"{_quoted(change.old)} in {there}, {_quoted(change.new)} in {here}{restart}"


def _quoted(text: str | None) -> str:
    return "absent" if text is None else f'"{text}"'
