"""The manual of commands, the help, and the cookbook, which all speak of the same command line."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailismus.__main__ import build_parser, main
from mailismus.start.commands.manual import _subcommands, write_page

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "man").iterdir())


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    action = _subcommands(parser)
    for inner in action.choices.values() if action else ():
        yield from parsers(inner)


PARSERS = list(parsers(build_parser()))


def examples(text: str) -> Iterator[str]:
    """The commands of ours in a text: at the beginning of a line, behind a prompt or a pipe, or between backquotes."""
    yield from re.findall(r"(?<!`)`(mailismus [^`]*)`", text)
    for line in text.splitlines():
        found = re.search(r"(?:^|[|$] |-- )\s*(mailismus [^`]*)$", line.strip())
        if found:
            yield found[1]


def assert_is_understood(command: str) -> None:
    words = shlex.split(re.split(r"\s\(|\s\.\.\.$|\s>", command)[0], comments=True)[1:]
    if "|" in words:
        words = words[: words.index("|")]
    words = [word for word in words if word != "--help"] or ["shell"]
    words = [{"ID": "000000010000002A", "COMMAND": "shell", "PAGE": "settings"}.get(word, word) for word in words]
    build_parser().parse_args(words)


def test_the_shipped_page_is_what_the_parsers_say() -> None:
    assert (DOCS / "man" / "mailismus.1").read_text() == write_page(build_parser()), (
        "write it anew: mailismus manual commands > docs/man/mailismus.1"
    )


def test_the_pages_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    for words, file in (
        (["commands"], "man/mailismus.1"),
        (["settings"], "man/mailismus.xml.5"),
        (["settings", "--markdown"], "settings.md"),
    ):
        assert main(["manual", *words]) == 0
        assert capsys.readouterr().out == (DOCS / file).read_text()
    for wrong in (["nonsense"], [], ["commands", "--markdown"]):
        with pytest.raises(SystemExit) as caught:
            main(["manual", *wrong])
        assert caught.value.code == 64


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.prog)
def test_the_help_of_each_command_fits_a_terminal_and_says_what_it_does(
    parser: argparse.ArgumentParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = parser.format_help()
    assert max(map(len, text.splitlines())) <= 80
    assert parser.description is not None
    assert len(parser.description) > 40
    if _subcommands(parser) is None:
        assert "\nexamples:\n" in text


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.prog)
def test_every_example_of_the_help_is_understood(parser: argparse.ArgumentParser) -> None:
    for command in examples(parser.epilog or ""):
        assert_is_understood(command)


def test_every_command_of_the_cookbook_is_understood() -> None:
    found = list(examples((DOCS / "cookbook.md").read_text()))
    assert len(found) > 20
    for command in found:
        assert_is_understood(command)


def test_every_option_is_on_the_page() -> None:
    page = write_page(build_parser()).replace("\\-", "-")
    for parser in PARSERS[1:]:
        for action in parser._actions:
            for option in action.option_strings:
                assert option in ("-h", "--help") or action.help == argparse.SUPPRESS or option in page


def test_the_synopsis_shows_which_arguments_may_be_left_out_or_given_again() -> None:
    page = write_page(build_parser()).replace("\\fI", "").replace("\\fB", "").replace("\\fR", "").replace("\\-", "-")
    synopsis = " ".join(page.partition('"DESCRIPTION"')[0].replace("\\&", "").split())
    for words in (
        "config diff [OTHER]",
        "config set PATH VALUE ... [",
        "config unset PATH ... [",
        "queue count [FILTER ...]",
    ):
        assert words in synopsis
    assert "queue flush [FILTER ...] .PP" in synopsis


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_no_fault_that_groff_or_mandoc_finds(page: Path) -> None:
    assert page.read_text().startswith('.\\" Generated')
    commands = ["groff", "-man", "-ww", "-b", "-z", "-Tutf8"], ["mandoc", "-Tlint"]
    here = [command for command in commands if shutil.which(command[0])]
    if not here:
        pytest.skip("neither groff nor mandoc is installed")
    for command in here:
        done = subprocess.run([*command, str(page)], capture_output=True, text=True, timeout=60)
        assert (done.stdout + done.stderr, done.returncode) == ("", 0)


def test_every_signal_that_the_server_obeys_is_in_the_help() -> None:
    text = build_parser().format_help()
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"):
        assert f"{name} " in text or f"{name}," in text
