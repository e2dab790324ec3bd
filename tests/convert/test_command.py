"""The command `queue convert`, its words and exit codes."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mailismus.__main__ import main
from mailismus.admin.commands.convert import print_converted
from mailismus.admin.commands.progress import ProgressLine
from mailismus.disk.posix import PosixDisk
from mailismus.queue.convert.conversion import Converted
from mailismus.queue.convert.copying import Copied
from mailismus.queue.files.conversion import ConversionState, QueueConversion, write_conversion
from tests.convert.kinds import KINDS, harness_of, make_queue, stop

CONFIG = """\
<mailserver><application><announcehost>mx.example.net</announcehost></application>
<mta>
<queue provider="{provider}"><rootpath>{path}/queue</rootpath>
<spool><rootpath>{path}/spool</rootpath></spool></queue>
</mta>
<admin><socket>{path}/admin.sock</socket></admin></mailserver>
"""
CLUSTERED, LINKS, LOG, CHUNK = KINDS


def config_of(directory: Path, provider: str) -> str:
    file = directory / f"{provider}.xml"
    file.write_text(CONFIG.format(provider=provider, path=directory))
    return str(file)


def run(config: str, *words: str) -> int:
    return main(["--config", config, "queue", *words])


def entries_of(config: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What `queue list --json` tells, an object a recipient: a message may come in several."""
    capsys.readouterr()
    assert run(config, "list", "--json") == 0
    lines = capsys.readouterr().out.splitlines()
    parts = [json.loads(line) for line in lines]
    return sorted(json.dumps({**part, "recipients": one}) for part in parts for one in part["recipients"])


def test_to_another_provider_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_queue(CLUSTERED, tmp_path)
    clustered, log = config_of(tmp_path, "clustered"), config_of(tmp_path, "log")
    before = entries_of(clustered, capsys)
    assert run(clustered, "convert", "--to", "log") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    program = f"mailismus --config {clustered}"
    assert printed.out.splitlines() == [
        f"Converted from clustered to log and compared: {len(before)} entries, 12 messages, 165,591 bytes.",
        f"Before the next start: {program} config set mta/queue provider=log",
        f"The old queue is kept in {tmp_path}/queue/conversion/old; to remove it: {program} queue convert --forget-old",
    ]
    assert entries_of(log, capsys) == before
    assert run(log, "convert", "--forget-old") == 0
    assert capsys.readouterr().out == "The old queue of provider clustered is removed; this one is of provider log.\n"
    assert run(clustered, "convert", "--to", "clustered") == 0
    assert "next start" not in capsys.readouterr().out
    assert entries_of(clustered, capsys) == before


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("log", ["mta/queue/maxclustersize", "mta/queue/journal/maxage", "mta/queue/spool/hardlinks"]),
        ("chunk", ["mta/queue/maxclustersize", "mta/queue/journal", "mta/queue/spool"]),
    ],
)
def test_the_settings_to_unset_are_named_and_the_printed_command_works(
    target: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_queue(CLUSTERED, tmp_path)
    config = Path(config_of(tmp_path, "clustered"))
    own = "<maxclustersize>128K</maxclustersize><journal><segmentsize>16Mi</segmentsize><maxage>2s</maxage></journal>"
    text = config.read_text().replace("<spool>", f"{own}<spool><hardlinks>N</hardlinks>")
    config.write_text(text)
    before = entries_of(str(config), capsys)
    assert run(str(config), "convert", "--to", target) == 0
    _, change, _ = capsys.readouterr().out.splitlines()
    begin = f"Before the next start: mailismus --config {config} config set"
    assert change == f"{begin} mta/queue provider={target} --unset {' '.join(words)}"
    assert main(shlex.split(change.partition(": mailismus ")[2])) == 0
    assert entries_of(str(config), capsys) == before


def test_of_a_queue_in_services_no_directory_is_named_and_its_configuration_is_to_be_kept() -> None:
    out = io.StringIO()
    way = QueueConversion(ConversionState.KEPT, "distributed", "clustered", None)
    done = Converted(way, "/q/conversion/old", Copied(1, 1, 5))
    print_converted(done, ["mta/queue/objects"], "mailismus", out, is_left_there=True)
    _, change, old = out.getvalue().splitlines()
    assert change.endswith(": mailismus config set mta/queue provider=clustered --unset mta/queue/objects")
    assert old == (
        "The old queue stays in its services, where no server is let in. To remove it, keep a copy of this configuration: "
        "mailismus --config COPY queue convert --forget-old"
    )


def test_the_old_queue_can_be_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_queue(CLUSTERED, tmp_path)
    config = config_of(tmp_path, "clustered")
    before = entries_of(config, capsys)
    assert run(config, "convert", "--to", "log") == 0
    old = ("--queue", f"{tmp_path}/queue/conversion/old", "--spool", f"{tmp_path}/spool/conversion/old")
    capsys.readouterr()
    assert main(["queue", "list", "--json", *old]) == 0
    assert len(capsys.readouterr().out.splitlines()) <= len(before)
    assert main(["fsck", *old]) == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "one of the arguments --to --forget-old --give-up is required"),
        (("--to",), "expected one argument"),
        (("--to", "log", "--forget-old"), "not allowed with argument"),
        (("--to", "mbox"), "there is no provider mbox; --to takes one of: clustered, log"),
        (("--to", "log", "--queue", "/q"), "unrecognized arguments: --queue /q"),
        (("--to", "log", "sender=a@b"), "unrecognized arguments: sender=a@b"),
    ],
)
def test_wrong_use(words: tuple[str, ...], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_queue(CLUSTERED, tmp_path)
    try:
        status = run(config_of(tmp_path, "clustered"), "convert", *words)
    except SystemExit as exit_:
        status = int(exit_.code or 0)
    assert status == 64
    assert error in capsys.readouterr().err
    assert not (tmp_path / "queue" / "conversion").exists()


def test_a_start_and_every_command_under_another_provider_say_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_queue(CLUSTERED, tmp_path)
    config = config_of(tmp_path, "log")
    assert run(config, "list") == 78
    assert "or convert it: mailismus queue convert --to log" in capsys.readouterr().err
    started = subprocess.run(
        [sys.executable, "-m", "twisted", "mailismus", "--config", config], capture_output=True, text=True, check=False
    )
    assert started.returncode == 78
    assert "or convert it: mailismus queue convert --to log" in started.stderr
    assert run(config, "convert", "--to", "log") == 0
    capsys.readouterr()
    assert run(config, "count") == 0


@pytest.mark.parametrize("words", [("queue", "list"), ("queue", "count"), ("fsck",), ("fsck", "--repair")])
def test_between_two_queues_every_command_is_refused(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_queue(CLUSTERED, tmp_path)
    queue = tmp_path / "queue"
    (queue / "conversion").mkdir(0o700)
    conversion = QueueConversion(ConversionState.MOVING_OUT, "clustered", "log", str(tmp_path / "spool"))
    write_conversion(PosixDisk(), str(queue), conversion)
    for provider in ("clustered", "log"):
        assert main(["--config", config_of(tmp_path, provider), *words]) == 75
        assert "finish it: mailismus queue convert --to log" in capsys.readouterr().err


def test_a_server_that_runs_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_queue(CLUSTERED, tmp_path)
    harness = harness_of(CLUSTERED, tmp_path)
    queue = harness.open()
    assert run(config_of(tmp_path, "clustered"), "convert", "--to", "log") == 75
    assert "a queue is converted while no server runs on it" in capsys.readouterr().err
    stop(harness, queue)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_line_on_a_terminal_and_nothing_elsewhere() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for out in (terminal, pipe):
        line = ProgressLine(out)
        line.show("messages copied", 12_000, 0)
        line.show("messages copied", 12_001, 0)
        line.end()
    assert terminal.getvalue() == "\rmessages copied: 12,000\r" + " " * 23 + "\r"
    assert pipe.getvalue() == ""
