"""What a command imports: a `queue count` beside a loaded server takes from its deliveries as little as it can."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailismus.__main__ import COMMANDS, build_parser, find_command, main
from tests.project.runners import await_text, command, running

CONFIG = """<mailserver>
  <application><announcehost>mx.example</announcehost><dirpaths><root>.</root></dirpaths></application>
  <mta><queue provider="{provider}"><minfree>0</minfree></queue>
    <submit><listeners><listener name="SMTP" interface="127.0.0.1" port="0"/></listeners></submit></mta>
</mailserver>
"""

COUNTING = """\
import sys
from mailismus.__main__ import main
status = main(sys.argv[1:])
print(status, *sys.modules)
"""

NEVER = frozenset(("twisted", "zope", "asyncio", "ssl", "cryptography", "dns", "email", "urwid", "jinja2"))
"""Packages of which a command that asks a server needs nothing."""

OF_OTHERS = frozenset(
    ("app", "demo", "deliver", "inject", "net", "plan", "probe", "sendmail", "smtp", "surgery", "top", "web")
)
"""Rooms of other commands, and of the server."""

MOST = 150
"""Modules of ours that a count beside a server may import. Every count pays for one more: see whether it has to."""


@pytest.mark.parametrize("provider", ["log", "clustered"])
def test_a_count_beside_a_server_imports_what_it_needs(provider: str, tmp_path: Path) -> None:
    config = tmp_path / "mailismus.xml"
    config.write_text(CONFIG.format(provider=provider))
    with running(command("foreground", str(config)), tmp_path) as (process, output):
        await_text(output, "ready: ")
        modules = modules_of("--config", str(config), "queue", "count", cwd=tmp_path)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert f"mailismus.queue.providers.{provider}.read.planned_count" in modules
    assert {name.partition(".")[0] for name in modules} & NEVER == set()
    ours = [name.split(".") for name in modules if name.startswith("mailismus.")]
    assert {name[1] for name in ours} & OF_OTHERS == set()
    assert len(ours) <= MOST, f"{len(ours)} modules"


def modules_of(*words: str, cwd: Path) -> set[str]:
    """What a command that ends well has imported."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    line = [sys.executable, "-c", COUNTING, *words]
    done = subprocess.run(line, capture_output=True, text=True, check=True, cwd=cwd, env=environment)
    status, *modules = done.stdout.splitlines()[-1].split()
    assert status == "0", done.stderr
    return set(modules)


def commands_of(name: str | None) -> list[str]:
    """The commands of a command line that was built for this one."""
    (found,) = (action.choices for action in build_parser(command=name)._actions if action.choices is not None)
    return list(found)


def every_command() -> Iterator[str]:
    for names in COMMANDS:
        yield from names


def test_the_table_of_commands_says_what_each_module_adds() -> None:
    assert commands_of(None) == list(every_command())
    for names in COMMANDS:
        for name in names:
            assert commands_of(name) == list(names)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["queue", "count"], "queue"),
        (["--config", "a", "top"], "top"),
        (["--config=a", "fsck", "--repair"], "fsck"),
        (["--version", "queue"], None),
        (["quue", "count"], None),
        (["--config", "queue"], None),
        ([], None),
    ],
)
def test_the_command_is_found_before_its_options_are_parsed(words: list[str], found: str | None) -> None:
    assert find_command(words) == found


def test_a_word_that_is_no_command_is_refused_with_all_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["quue", "count"])
    complaint = capsys.readouterr().err
    assert all(f"'{name}'" in complaint for name in every_command())
