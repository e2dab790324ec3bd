"""A command about the queue: its words, what it works on, its function; and the arguments that several have."""

from __future__ import annotations

import argparse
import enum
from collections.abc import Callable
from typing import TextIO, TypeVar

import attrs

from mailismus.admin.client.source import QueueSource
from mailismus.admin.commands import wording
from mailismus.queue.filter import FORMS

T = TypeVar("T")


class Reach(enum.Enum):
    """The kinds of queue that a command works on."""

    SERVER_OR_FILES = "server or files"
    SERVER = "server"
    SERVER_OR_LOCK = "server, or the stopped queue under its lock"


@attrs.frozen
class Command:
    """One command. `fill` adds its arguments to a parser; a list of FILTERs is called `filter` there."""

    name: str
    reach: Reach
    summary: str
    description: str
    fill: Callable[[argparse.ArgumentParser], None]
    run: Callable[[QueueSource, argparse.Namespace, TextIO], None]

    def describe(self, parser: argparse.ArgumentParser, program: str) -> None:
        """Give the parser the command's arguments and its help. `program`: the words before the command."""
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.description = self.description
        parser.epilog = wording.examples_of(self.name, program)
        self.fill(parser)


def fill_filter(parser: argparse.ArgumentParser) -> None:
    """Add the list of FILTERs."""
    parser.add_argument("filter", nargs="*", metavar="FILTER", help=f"{FORMS}; of several all must match")


def positive(text: str) -> int:
    """Return a whole number from 1. Raises `ArgumentTypeError`."""
    if not text.isascii() or not text.isdigit() or len(text) > 15 or int(text) < 1:
        raise argparse.ArgumentTypeError("write a whole number from 1")
    return int(text)


def argument_type(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return a type of arguments: `parse`, whose `ValueError` says what to write."""

    def checked(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked
