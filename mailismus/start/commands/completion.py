"""Completion in shells: scripts for bash, zsh and fish, made from the parsers of the command line; and the command
`mailismus completion`.

*Rules*: a script knows every command, option and setting of this version, and starts no program when a key is pressed. Words
of the configuration or the queue (names, ids, domains) are not completed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from mailismus.start.commands import completion_scripts, wording
from mailismus.start.commands.completion_scripts import CommandWords, OptionWords
from mailismus.start.exits import Exit

Known = Mapping[str, Sequence[str]]
"""Words that an argument may be, whole or their beginnings, by its name in the help."""
_FILES = frozenset({"FILE", "OTHER", "DIR", "DIRECTORY", "QUEUE", "SPOOL"})
"""Names of arguments that are files."""
_HELP = ("-h", "--help")
_CONFIG = OptionWords(("--config",), "the configuration", has_value=True, values=(), is_file=True)
"""The option that may stand behind each command; helps tell of it once."""
SCRIPTS: dict[str, Callable[[Sequence[CommandWords]], str]] = {
    "bash": completion_scripts.bash,
    "zsh": completion_scripts.zsh,
    "fish": completion_scripts.fish,
}


def register(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    build_parser: Callable[[], argparse.ArgumentParser],
    known: Callable[[], Known],
) -> None:
    """Add the command. `build_parser` returns the complete command line, `known` what arguments may be."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands in a shell",
        description=wording.COMPLETION,
        epilog=wording.COMPLETION_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=lambda arguments: _print(arguments.shell, build_parser(), known()))


def _print(shell: str, parser: argparse.ArgumentParser, known: Known) -> int:
    sys.stdout.write(SCRIPTS[shell](list(words_of(parser, known))))
    return Exit.OK


def words_of(parser: argparse.ArgumentParser, known: Known, path: str = "") -> Iterator[CommandWords]:
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
            options += [_CONFIG] if _CONFIG.names[0] in action.option_strings else []
        elif action.option_strings:
            options.append(_option(action, known))
        else:
            words += _values(action, known)
            takes_files = takes_files or action.metavar in _FILES
    yield CommandWords(path, commands, tuple(options), words, takes_files)
    for name, below in parsers.items():
        yield from words_of(below, known, f"{path} {name}".strip())


def _option(action: argparse.Action, known: Known) -> OptionWords:
    has_value = action.nargs != 0
    help_ = "show the help" if tuple(action.option_strings) == _HELP else action.help or ""
    is_file = has_value and action.metavar in _FILES
    return OptionWords(tuple(action.option_strings), help_, has_value, _values(action, known), is_file)


def _values(action: argparse.Action, known: Known) -> tuple[str, ...]:
    if action.choices:
        return tuple(map(str, action.choices))
    return tuple(known.get(action.metavar, ())) if isinstance(action.metavar, str) else ()
