"""The manual of commands: the page mailismus(1), made from the parsers of the command line; and the command `mailismus
manual`.

*Rules*: the page has the text of `--help`: descriptions, options, examples. Nothing depends on the width of a terminal or on
this installation.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

from mailismus.config.generate import manual, roff
from mailismus.start.commands import wording
from mailismus.start.exits import Exit

PAGE = "mailismus"

_OPTIONAL = ("{}", "[{}]")
"""An option in a synopsis, by whether it may be left out."""
_POSITIONAL: dict[int | str | None, str] = {"*": "[{} ...]", "+": "{} ...", "?": "[{}]"}
"""How the synopsis writes an argument, by its `nargs`; any other is written as it is."""


def register(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], build_parser: Callable[[], argparse.ArgumentParser]
) -> None:
    """Add the command. `build_parser` returns the complete command line."""
    page = commands.add_parser(
        "manual",
        help="print a page of the manual",
        description=wording.MANUAL,
        epilog=wording.MANUAL_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    page.add_argument("page", choices=("commands", "settings"), metavar="PAGE", help="which one: commands or settings")
    page.add_argument("--markdown", action="store_true", help="write settings as Markdown, not as a page for man")
    page.set_defaults(run=lambda arguments: _print(arguments, build_parser))


def write_page(parser: argparse.ArgumentParser) -> str:
    """The page for a complete command line."""
    return roff.join(_page(parser))


def _print(arguments: argparse.Namespace, build_parser: Callable[[], argparse.ArgumentParser]) -> int:
    if arguments.page == "commands":
        if arguments.markdown:
            build_parser().error("commands have no page in Markdown")
        sys.stdout.write(write_page(build_parser()))
    else:
        sys.stdout.write(manual.write_markdown() if arguments.markdown else manual.write_page())
    return Exit.OK


def _page(parser: argparse.ArgumentParser) -> Iterator[str]:
    found = list(_commands_of(parser, ""))
    yield from roff.title(PAGE, 1, "manage a mail queue server")
    yield from roff.heading("Synopsis")
    for name, command in found:
        if _subcommands(command) is None:
            yield ".PP"
            yield from roff.fold(_synopsis(name, command))
    yield from roff.heading("Description")
    yield from _text(parser.description or "")
    yield from roff.heading("Options")
    yield from _options(parser)
    yield from roff.heading("Commands")
    for name, command in found:
        yield from roff.subheading(name)
        yield from _text(command.description or "")
        yield from _options(command)
        yield from _text(command.epilog or "")
    for title, lines in roff.blocks(parser.epilog or ""):
        yield from roff.heading(title.removesuffix(":"))
        yield from roff.literal(lines)
    yield from roff.heading("See also")
    yield from roff.paragraph("`mailismus.xml`(5), `twistd`(1), `mailq`(1)")


def _subcommands(parser: argparse.ArgumentParser) -> argparse._SubParsersAction[argparse.ArgumentParser] | None:
    return next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)


def _commands_of(parser: argparse.ArgumentParser, before: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Name and parser of every command, each before its subcommands."""
    action = _subcommands(parser)
    if action is None:
        return
    for name, command in action.choices.items():
        yield before + name, command
        yield from _commands_of(command, f"{before}{name} ")


def _synopsis(name: str, parser: argparse.ArgumentParser) -> str:
    words = [roff.bold(PAGE), f"[{roff.bold('--config')} {roff.italic('FILE')}]", roff.bold(name)]
    for action in _own_actions(parser):
        value = _value_of(action)
        if action.option_strings:
            option = roff.bold(action.option_strings[-1])
            words.append(_OPTIONAL[not action.required].format(f"{option} {roff.italic(value)}" if value else option))
        else:
            words.append(_POSITIONAL.get(action.nargs, "{}").format(roff.italic(value)))
    return " ".join(words)


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in _own_actions(parser):
        value = _value_of(action)
        tag = " ".join([", ".join(action.option_strings), value]).strip()
        yield from roff.tagged(tag, _sentence(action.help or ""))


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:] if not text[:2].isupper() else text
    return text if text.endswith(".") else f"{text}."


def _own_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        is_shown = "--help" not in action.option_strings and action.help != argparse.SUPPRESS
        if is_shown and not isinstance(action, argparse._SubParsersAction):
            yield action


def _value_of(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()


def _text(text: str) -> Iterator[str]:
    """Paragraphs and blocks of a help text."""
    for title, lines in roff.blocks(text) if text else ():
        if not title:
            yield from roff.paragraph(lines[0])
            continue
        yield from roff.paragraph(title[:1].upper() + title[1:])
        yield from roff.literal(lines)
