"""The shell: reads commands about the running server's queue and runs them, one after the other.

*Rules*: each command has a connection of its own, so that the server holds nothing while the shell waits, and the shell
finds a restarted server. Ctrl-C stops a command, never the shell. Lines typed at a terminal are kept (`history`). Without a
terminal there is no prompt and no history, only the output of the commands.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Sequence
from typing import NoReturn, TextIO

from mailismus.admin.client.source import QueueSource
from mailismus.admin.commands import wording
from mailismus.admin.commands.command import Command
from mailismus.admin.commands.completion import candidates
from mailismus.admin.commands.history import ShellHistory, history_path
from mailismus.admin.commands.queue import COMMANDS, obey
from mailismus.errors import StartError
from mailismus.queue.filter import FilterError, parse_filter

PROMPT = "mailismus> "
GREETING = "The running server's queue. Type help for the commands, exit to leave."

_LEAVE = ("exit", "quit")


class Leave(Exception):
    """The user leaves the shell."""


class _Parser(argparse.ArgumentParser):
    """The parser of one command, which never ends the program."""

    def error(self, message: str) -> NoReturn:
        raise StartError(os.EX_USAGE, f"{self.prog}: {message}; see: help {self.prog}")


def _parser_of(command: Command) -> _Parser:
    parser = _Parser(prog=command.name, add_help=False, allow_abbrev=False)
    command.describe(parser, "")
    return parser


class Shell:
    """Runs lines. `connect` returns a source of the running server (raises `StartError`), `now` UTC seconds."""

    def __init__(
        self, connect: Callable[[], QueueSource], now: Callable[[], float], out: TextIO, complain: Callable[[str], None]
    ) -> None:
        self._connect = connect
        self._now = now
        self.out = out
        self._complain = complain
        self._commands = {command.name: (command, _parser_of(command)) for command in COMMANDS}

    def obey(self, line: str) -> int:
        """Run a line. Return its exit code, 0 for an empty one. Raises `Leave`, and `OSError` for the output."""
        try:
            self._obey(line)
            self.out.flush()
        except StartError as error:
            self.out.flush()
            self._complain(error.text)
            return error.status
        return os.EX_OK

    def _obey(self, line: str) -> None:
        if line.lstrip().startswith("#"):
            return
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise StartError(os.EX_USAGE, f"{str(error).lower()}: close it, or write a backslash before it") from None
        if "#" in words:  # as the examples have it
            words = words[: words.index("#")]
        if words[:1] == ["queue"] and len(words) > 1:
            words = words[1:]
        if not words:
            return
        name, rest = words[0], words[1:]
        if name in _LEAVE:
            raise Leave
        if name in ("help", "?"):
            self._help(rest)
        elif name in self._commands:
            self._run(name, rest)
        else:
            raise StartError(os.EX_USAGE, f"{name}: no such command; see: help")

    def _run(self, name: str, rest: Sequence[str]) -> None:
        if "--help" in rest or "-h" in rest:
            return self._help([name])
        command, parser = self._commands[name]
        arguments = parser.parse_intermixed_args(rest)
        try:
            parse_filter(getattr(arguments, "filter", []), self._now())
        except FilterError as error:
            raise StartError(os.EX_USAGE, str(error)) from None
        obey(command, self._connect(), arguments, self.out)
        return None

    def _help(self, words: Sequence[str]) -> None:
        names = [word for word in words if word != "queue"]
        if not names:
            for command, _ in self._commands.values():
                self.out.write(f"{command.name:<14} {command.summary}\n")
            self.out.write(f"{'help COMMAND':<14} how a command is written\n{'exit, quit':<14} leave\n")
            self.out.write(f"\n{wording.FILTERS}\n")
        elif names[0] in self._commands:
            self._commands[names[0]][1].print_help(self.out)
        else:
            raise StartError(os.EX_USAGE, f"{names[0]}: no such command; see: help")


def run_shell(shell: Shell, lines: TextIO) -> int:
    """Run all `lines`. Return the exit code of the last command that failed, 0 if none did."""
    reconfigure = getattr(lines, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="surrogateescape")
    if lines.isatty() and shell.out.isatty():
        return _converse(shell)
    status = os.EX_OK
    try:
        while line := lines.readline():
            status = shell.obey(line) or status
    except Leave:
        pass
    return status


def _converse(shell: Shell) -> int:
    """Run the shell at a terminal."""
    path = history_path(os.environ)
    history = ShellHistory(path) if path is not None else None
    _edit_lines(history.load() if history is not None else [])
    shell.out.write(GREETING + "\n")
    status = os.EX_OK
    while True:
        try:
            line = input(PROMPT)
            if history is not None:
                history.add(line)
            status = shell.obey(line) or status
        except KeyboardInterrupt:
            shell.out.write("\n")
        except EOFError:
            shell.out.write("\n")
            return status
        except Leave:
            return status


def _edit_lines(lines: Sequence[str]) -> None:
    """Enable line editing, history and completion, if Python was built with them."""
    try:
        import readline
    except ImportError:
        return

    def complete(word: str, state: int) -> str | None:
        found = candidates(readline.get_line_buffer()[: readline.get_begidx()].split(), word)
        return found[state] if state < len(found) else None

    for line in lines:
        readline.add_history(line)
    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n")
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
