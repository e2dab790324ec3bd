"""The parsers of the command line: `argparse`'s, with exit codes and complaints of ours."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from mailismus.start.exits import Exit, complain
from mailismus.start.version import program_version


class Parser(argparse.ArgumentParser):
    """A parser whose errors end the program with 64, and that takes the options of a command between its other words."""

    _is_within = False

    def parse_known_args(  # type: ignore[override] # typeshed has overloads for namespaces of every type
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        if self._is_within or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._is_within = True  # argparse calls this method again
        try:
            parsed, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_within = False
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")  # here, so that the hint names the command
        return parsed, []

    def error(self, message: str) -> NoReturn:
        complain(f"{self.prog}: {message}; see: {self.prog} --help")
        raise SystemExit(int(Exit.USAGE))


class CommandParser(Parser):
    """The parser of a command, and of the commands below it: `--config` may stand behind each too; the last one counts."""

    def __init__(self, **words: Any) -> None:
        super().__init__(**words)
        self.add_argument("--config", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


class ShowVersion(argparse.Action):
    """`--version`: what it prints takes time to find, so it is found when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        text = "show program's version number and exit"
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=text)

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> NoReturn:
        print(f"Mailismus {program_version()}")
        parser.exit()
