"""Scripts of completion: every command and option is in them, and shells complete by them."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

import pytest

from mailismus.__main__ import build_parser, main
from mailismus.start.commands.completion import SCRIPTS, words_of

TRIES = [
    ("mailismus que", ["queue"]),
    ("mailismus queue s", ["servers", "setup", "shape", "show"]),
    ("mailismus --config some/file queue s", ["servers", "setup", "shape", "show"]),
    ("mailismus queue shape --by ", ["domain", "host", "sender"]),
    ("mailismus queue shape --by host --li", ["--limit"]),
    ("mailismus queue list --limit 3 dom", ["domain="]),
    ("mailismus completion ", ["bash", "fish", "zsh"]),
    ("mailismus dump /etc/hostn", ["/etc/hostname"]),
    ("mailismus config set mta/queue/minf", ["mta/queue/minfree"]),
    ("mailismus config unset --dry-run mta/deliver/relays/relay/@addr", ["mta/deliver/relays/relay/@address"]),
    ("mailismus plan --set mta/queue/minf", ["mta/queue/minfree="]),
    ("mailismus queue list --config /etc/hostn", ["/etc/hostname"]),
    ("mailismus queue convert --to cl", ["clustered"]),
    ("mailismus nonsense --x", []),
]
_BASH = """
compopt() {{ :; }}
COMP_WORDBREAKS=" "
COMP_LINE={0!r}
COMP_POINT=${{#COMP_LINE}}
_mailismus
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
_ZSH = """
compdef() {{ : }}
source {1}
compadd() {{
    local word
    for word in "$@"; do
        case $word in
            (--|-S|"") ;;
            ($words[CURRENT]*) print -r -- $word ;;
        esac
    done
}}
_files() {{ local -a found=($words[CURRENT]*(N)); print -l -r -- $found }}
line={0!r}
words=(${{=line}})
[[ $line == *" " ]] && words+=("")
CURRENT=$#words
_mailismus
exit 0
"""


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", SCRIPTS)
def test_every_command_and_option_is_in_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    found = list(words_of(build_parser(), {"FILTER": ("area=deferred",)}))
    assert {"", "queue", "queue list", "config set", "top", "demo"} <= {one.path for one in found}
    for one in found:
        for name in [*one.commands, *(name.lstrip("-") for option in one.options for name in option.names)]:
            assert name in text
    assert "area=deferred" in text


@pytest.mark.parametrize(("line", "wanted"), [*TRIES, ("mailismus queue list area=def", ["area=deferred"])])
def test_bash_completes(line: str, wanted: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(_run(["bash", "--norc"], script("bash", capsys) + _BASH.format(line))) == wanted


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("mailismus queue list area=def", "deferred"),
        ("mailismus config set mta/deliver/relays/relay/@addr", "address"),
        ("mailismus config set mta/queue/minf", "mta/queue/minfree"),
    ],
)
def test_bash_gets_what_stands_behind_a_break_of_words(line: str, wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = script("bash", capsys) + _BASH.format(line).replace('=" "', '=" =@"')
    assert _run(["bash", "--norc"], code) == [wanted]


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(("line", "wanted"), [*TRIES[:-1], ("mailismus queue list area=def", ["area=deferred"])])
def test_fish_completes(line: str, wanted: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    lines = _run(["fish", "--no-config"], script("fish", capsys) + f"\ncomplete -C '{line}'\n")
    assert sorted(text.partition("\t")[0] for text in lines) == wanted


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
@pytest.mark.parametrize(("line", "wanted"), TRIES)
def test_zsh_completes(line: str, wanted: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "_mailismus"
    file.write_text(script("zsh", capsys))
    assert sorted(_run(["zsh", "-f"], _ZSH.format(line, file))) == wanted


def _run(shell: list[str], code: str) -> list[str]:
    """What a shell prints."""
    done = subprocess.run(shell, input=code, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return [line for line in done.stdout.split("\n") if line]


def _all(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return [parser, *(found for action in below for one in action.choices.values() for found in _all(one))]


def test_every_help_has_examples() -> None:
    for parser in _all(build_parser()):
        assert "\nexamples:\n" in f"\n{parser.format_help()}", parser.prog
