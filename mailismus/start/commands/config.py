"""The commands `mailismus config ...`: check and show a configuration, write the sample and the schema; the parsers of those
that change and compare it."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial

from mailismus.config.generate.sample import write_sample
from mailismus.config.generate.schema import write_schema
from mailismus.config.generate.validation import validate
from mailismus.config.read.document import parse_tree, read_bytes
from mailismus.config.read.files import Files
from mailismus.config.read.load import find_file, load
from mailismus.config.values.certificates import describe_end, find_trouble, one_for_each_file
from mailismus.config.values.effective import Effective
from mailismus.queue.provider import IProviders
from mailismus.start.commands import wording
from mailismus.start.commands.config_advice import say_advice
from mailismus.start.commands.config_change import run_set, run_unset
from mailismus.start.commands.config_diff import run_diff
from mailismus.start.exits import Exit, one_line


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser], providers: IProviders) -> None:
    """Add them to the command line. `providers`: of the queue; `check` asks one what it lacks."""
    config = _add(
        commands, "config", "check, show, compare or change the configuration", wording.CONFIG, wording.CONFIG_EPILOG
    )
    verbs = config.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add(verbs, "check", "check the file", wording.CHECK, wording.CHECK_EPILOG).set_defaults(run=partial(_check, providers))
    _add(verbs, "show", "show every value in force", wording.SHOW, wording.SHOW_EPILOG).set_defaults(run=_show)
    _add_set(verbs)
    _add_unset(verbs)
    diff = _add(verbs, "diff", "compare with the running server or another file", wording.DIFF, wording.DIFF_EPILOG)
    diff.add_argument("other", nargs="?", metavar="OTHER", help="a configuration file; the running server without it")
    diff.set_defaults(run=run_diff)
    _add(verbs, "sample", "print a sample file", wording.SAMPLE, wording.SAMPLE_EPILOG).set_defaults(run=_print_sample)
    _add(verbs, "schema", "print a schema for editors", wording.SCHEMA, wording.SCHEMA_EPILOG).set_defaults(
        run=_print_schema
    )


def _add(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, description: str, epilog: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_set(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _add(verbs, "set", "change a setting in the file", wording.SET, wording.SET_EPILOG)
    parser.add_argument("path", metavar="PATH", help="a setting or a block, as `config show` prints it")
    parser.add_argument("values", nargs="+", metavar="VALUE", help="its value, or items of a list; of a block: NAME=VALUE")
    parser.add_argument("--unset", nargs="+", default=(), metavar="PATH", help="remove these by the same change")
    _add_dry_run(parser)
    parser.set_defaults(run=run_set)


def _add_unset(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _add(verbs, "unset", "remove a setting from the file", wording.UNSET, wording.UNSET_EPILOG)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a setting or a block, as `config show` prints it")
    _add_dry_run(parser)
    parser.set_defaults(run=run_unset)


def _add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show the difference and change nothing")


def _check(providers: IProviders, arguments: argparse.Namespace) -> int:
    file = find_file(arguments.config)
    loaded = load(file)
    for note in loaded.notes:
        print(one_line(f"{file}: note: {note}"))
    now = time.time()
    for certificate in one_for_each_file(loaded.settings.certificates):
        if not find_trouble(certificate, now):  # else it is part of the advice
            end = describe_end(certificate.ends_at, now)
            print(one_line(f"{file}: {certificate.use}: certificate {certificate.path} {end}"))
    lacks = providers.named(loaded.settings.queue.provider).lacks()
    if not say_advice(file, loaded, now, lacks=lacks):
        return Exit.CONFIG
    _ask_schema(file)
    print(one_line(f"{file}: ok"))
    return Exit.OK


def _ask_schema(file: str) -> None:
    """A second opinion on a file that has been accepted."""
    finding = validate(parse_tree(read_bytes(file, Files()), file))
    if finding is not None:
        place = f"{file}:{finding.line}" if finding.line else file
        text = f"the schema refuses this, and the server takes it: {finding.text}; please report it"
        print(one_line(f"{place}: warning: {text}"), flush=True)


def _show(arguments: argparse.Namespace) -> int:
    file = find_file(arguments.config)
    for value in load(file).effective:
        print(one_line(f"{value.path} = {value.text} [{_origin(value, file)}]"))
    return Exit.OK


def _origin(value: Effective, file: str) -> str:
    origin = f"{file}:{value.line}" if value.line else "default"
    return f"{origin}, lowered to fit {value.lowered_to_fit}" if value.is_lowered else origin


def _print_sample(arguments: argparse.Namespace) -> int:
    sys.stdout.write(write_sample())
    return Exit.OK


def _print_schema(arguments: argparse.Namespace) -> int:
    sys.stdout.write(write_schema())
    return Exit.OK
