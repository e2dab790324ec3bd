"""Completion in shells: scripts for bash, zsh and fish, made from the parsers of the command line; and the command
`mailismus completion`.

*Rules*: a script knows every command and option of this version, and starts no program when a key is pressed. Words of the
configuration or the queue (paths of settings, ids, domains) are not completed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence

from mailismus.start.commands import completion_scripts, wording
from mailismus.start.commands.completion_scripts import CommandWords, OptionWords
from mailismus.start.exits import Exit

_FILES = frozenset({"FILE", "OTHER", "DIR", "DIRECTORY", "QUEUE", "SPOOL", "PATH"})
"""Names of arguments that are files."""
_FILTER = "FILTER"
_HELP = ("-h", "--help")
SCRIPTS: dict[str, Callable[[Sequence[CommandWords]], str]] = {
    "bash": completion_scripts.bash,
    "zsh": completion_scripts.zsh,
    "fish": completion_scripts.fish,
}


def register(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    build_parser: Callable[[], argparse.ArgumentParser],
    filters: Sequence[str],
) -> None:
    """Add the command. `build_parser` returns the complete command line; `filters`: beginnings and wholes of FILTERs."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands in a shell",
        description=wording.COMPLETION,
        epilog=wording.COMPLETION_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=lambda arguments: _print(arguments.shell, build_parser(), filters))


def _print(shell: str, parser: argparse.ArgumentParser, filters: Sequence[str]) -> int:
    sys.stdout.write(SCRIPTS[shell](list(words_of(parser, filters))))
    return Exit.OK


def words_of(parser: argparse.ArgumentParser, filters: Sequence[str], path: str = "") -> Iterator[CommandWords]:
    """What may stand behind each command, the whole program first."""
    commands: dict[str, str] = {}
    parsers: dict[str, argparse.ArgumentParser] = {}
    options: list[OptionWords] = []
    words: tuple[str, ...] = ()
    takes_files = False
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            parsers = dict(action.choices)
            commands = {choice.dest: choice.help or "" for choice in action._choices_actions}
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            options.append(_option(action))
        else:
            words += _values(action) or (tuple(filters) if action.metavar == _FILTER else ())
            takes_files = takes_files or action.metavar in _FILES
    yield CommandWords(path, commands, tuple(options), words, takes_files)
    for name, below in parsers.items():
        yield from words_of(below, filters, f"{path} {name}".strip())


def _option(action: argparse.Action) -> OptionWords:
    has_value = action.nargs != 0
    help_ = "show the help" if tuple(action.option_strings) == _HELP else action.help or ""
    is_file = has_value and action.metavar in _FILES
    return OptionWords(tuple(action.option_strings), help_, has_value, _values(action), is_file)


def _values(action: argparse.Action) -> tuple[str, ...]:
    return tuple(map(str, action.choices or ()))
