"""What the shell completes."""

from __future__ import annotations

import argparse

import pytest

from mailismus.admin.commands.completion import FILTERS, candidates
from mailismus.admin.commands.queue import COMMANDS
from mailismus.queue.filter import FORMS, parse_filter
from mailismus.queue.interface import Area

VALUES = {"area=": "deferred", "older=": "1h", "younger=": "1h", "larger=": "1K"}


@pytest.mark.parametrize(
    ("line", "word", "wanted"),
    [
        ("", "l", ["list "]),
        ("", "e", ["exit "]),
        ("", "qu", ["queue ", "quit "]),
        ("queue", "", [f"{command.name} " for command in COMMANDS]),
        ("hold domain=x", "--f", ["--for "]),
        ("hold --reason", "x", []),
        ("undo", "", []),
        ("acts", "--", ["--json ", "--resume "]),
        ("queue", "e", []),
        ("help", "f", ["flush "]),
        ("list", "s", ["sender="]),
        ("queue list", "a", ["area="]),
        ("list", "area=", [f"area={area.value} " for area in Area]),
        ("flush domain=x", "area=de", ["area=deferred ", "area=deleted "]),
        ("list", "--", ["--json ", "--limit "]),
        ("list --json", "--", ["--limit "]),
        ("list --limit", "", []),
        ("shape", "--", ["--by ", "--json ", "--limit ", "--svg "]),
        ("shape --by", "", ["domain ", "host ", "sender "]),
        ("shape --by", "h", ["host "]),
        ("help", "s", ["shape ", "show ", "servers "]),
        ("show", "", []),
        ("why", "", []),
        ("why example.org", "--", ["--json ", "--limit "]),
        ("show 0000000100000001", "-", ["--body "]),
        ("nonsense", "s", []),
        ("exit", "", []),
    ],
)
def test_candidates(line: str, word: str, wanted: list[str]) -> None:
    assert candidates(line.split(), word) == wanted


def test_every_command_is_completed_and_every_option_of_it() -> None:
    for command in COMMANDS:
        assert candidates([], command.name) == [f"{command.name} "]
        parser = argparse.ArgumentParser(add_help=False)
        command.fill(parser)
        options = {name for action in parser._actions for name in action.option_strings}
        assert {name.strip() for name in candidates([command.name], "-")} == options, command.name
    assert {name.strip() for name in candidates([], "")} >= {command.name for command in COMMANDS}


def test_every_filter_is_one_and_all_are_there() -> None:
    for name in FILTERS:
        parse_filter([name + VALUES.get(name, "x")], 0.0)
    assert [name for name in FILTERS if name not in FORMS] == []
    assert FORMS.count("=") == len(FILTERS)
