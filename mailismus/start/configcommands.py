"""The commands `mailismus config ...`: check and show a configuration, write the sample and the schema."""

from __future__ import annotations

import argparse
import sys
import time

from mailismus.config.certificates import describe_end
from mailismus.config.effective import Effective
from mailismus.config.load import find_file, load
from mailismus.config.sample import write_sample
from mailismus.config.schema import write_schema
from mailismus.start.exits import Exit, one_line


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add them to the command line."""
    config = commands.add_parser(
        "config", help="check or show the configuration", description="Check or show the configuration."
    )
    verbs = config.add_subparsers(title="commands", metavar="COMMAND", required=True)
    check = verbs.add_parser(
        "check",
        help="check the file",
        description="Says ok, or what is wrong with the file, where, and what to write instead (exit 78).",
    )
    check.set_defaults(run=_check)
    show = verbs.add_parser(
        "show",
        help="show every value in force",
        description="Shows every value in force and where it comes from: default, or FILE:LINE.",
    )
    show.set_defaults(run=_show)
    sample = verbs.add_parser(
        "sample",
        help="print a sample file",
        description="Prints the shipped sample: every setting with its default and a sentence.",
    )
    sample.set_defaults(run=_print_sample)
    schema = verbs.add_parser(
        "schema", help="print a schema for editors", description="Prints a RELAX NG schema of configuration files."
    )
    schema.set_defaults(run=_print_schema)


def _check(arguments: argparse.Namespace) -> int:
    file = find_file(arguments.config)
    loaded = load(file)
    for note in loaded.notes:
        print(one_line(f"{file}: note: {note}"))
    now = time.time()
    for listener in loaded.settings.listeners:
        if listener.ssl is not None:
            end = describe_end(listener.ssl.ends_at, now)
            day = time.strftime("%Y-%m-%d", time.gmtime(listener.ssl.ends_at))
            print(one_line(f"{file}: listener {listener.name}: certificate {listener.ssl.certificate_path} {end} ({day})"))
    print(one_line(f"{file}: ok"))
    return Exit.OK


def _show(arguments: argparse.Namespace) -> int:
    file = find_file(arguments.config)
    for value in load(file).effective:
        print(one_line(f"{value.path} = {value.text} [{_origin(value, file)}]"))
    return Exit.OK


def _origin(value: Effective, file: str) -> str:
    origin = f"{file}:{value.line}" if value.line else "default"
    return f"{origin}, lowered to fit the open-file limit" if value.is_lowered else origin


def _print_sample(arguments: argparse.Namespace) -> int:
    sys.stdout.write(write_sample())
    return Exit.OK


def _print_schema(arguments: argparse.Namespace) -> int:
    sys.stdout.write(write_schema())
    return Exit.OK
