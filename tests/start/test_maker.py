"""Making the service: where the log goes for each runner, and how a refused start ends."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
from twisted.internet.task import Clock
from twisted.python import usage

from mailismus.errors import StartError, Unavailable
from mailismus.start import maker
from mailismus.start.logfile import EventLog
from mailismus.start.output import FileOutput
from mailismus.start.server import Reactor

REACTOR = cast(Reactor, Clock())


def twistd(**options: object) -> dict[str, Any]:
    return {"nodaemon": False, "logfile": None, "syslog": False, "logger": None, **options}


def test_a_daemon_logs_to_twistd_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = maker.find_log(twistd(), REACTOR)
    assert log.destination is log.maillog
    assert (tmp_path / "twistd.log").exists()


def test_a_named_log_is_used_by_all(tmp_path: Path) -> None:
    for number, nodaemon in enumerate((True, False)):
        maker.find_log(twistd(nodaemon=nodaemon, logfile=str(tmp_path / f"log{number}")), REACTOR)
        assert (tmp_path / f"log{number}").stat().st_mode & 0o777 == 0o600


def test_in_the_foreground_the_log_is_stdout() -> None:
    for logfile in (None, "-"):
        log = maker.find_log(twistd(nodaemon=True, logfile=logfile), REACTOR)
        assert log.destination is not None
        assert not isinstance(log.destination.output, FileOutput)


def test_a_daemon_cannot_log_to_stdout() -> None:
    with pytest.raises(StartError) as caught:
        maker.find_log(twistd(logfile="-"), REACTOR)
    assert caught.value.status == 64


def test_a_log_that_cannot_be_opened_refuses_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="can't be opened: No such file"):
        maker.find_log(twistd(logfile=str(tmp_path / "none" / "log")), REACTOR)


@pytest.mark.parametrize("option", ["syslog", "logger"])
def test_a_log_of_somebody_else_gets_events(option: str) -> None:
    log = maker.find_log(twistd(**{option: True}), REACTOR)
    assert log.destination is None
    assert isinstance(log.maillog, EventLog)


def test_twist_writes_text_unless_it_was_told_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    factory = object()
    with (tmp_path / "out").open("w") as stream:
        monkeypatch.setattr(sys, "argv", ["twist", "mailismus"])
        runner = {"fileLogObserverFactory": factory, "logFile": stream}
        log = maker.find_log(runner, REACTOR)
        assert cast(Any, runner["fileLogObserverFactory"])(stream) is log.destination
        monkeypatch.setattr(sys, "argv", ["twist", "--log-format=json", "mailismus"])
        runner = {"fileLogObserverFactory": factory, "logFile": stream}
        maker.find_log(runner, REACTOR)
        assert runner["fileLogObserverFactory"] is factory


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StartError(75, "held"), 75),
        (Unavailable("full", full=True), 74),
        (PermissionError(13, "no"), 77),
        (OSError(5, "I/O"), 74),
        (ZeroDivisionError("bug"), 70),
    ],
)
def test_whatever_build_raises_ends_with_a_code_of_ours_and_one_line(
    error: Exception, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start_with(error, monkeypatch, tmp_path, "<mailserver/>") == status
    assert capsys.readouterr().err.splitlines()[-1]


def test_what_was_tried_for_a_setting_is_refused_where_it_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = "<mailserver><mta><queue>\n<spool>\n<hardlinks>Y</hardlinks></spool></queue></mta></mailserver>"
    error = StartError(78, "no links here", "mta/queue/spool/hardlinks")
    assert start_with(error, monkeypatch, tmp_path, document) == 78
    assert capsys.readouterr().err == f"{tmp_path}/c.xml:3: no links here\n"


def start_with(error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, document: str) -> object:
    """The exit code of a start whose `build` raises this."""

    def build(*_: object) -> NoReturn:
        raise error

    (tmp_path / "c.xml").write_text(document)
    options = maker.Options()
    options.parseOptions(["--config", str(tmp_path / "c.xml")])
    options.parent = cast(usage.Options, twistd(nodaemon=True))
    with pytest.raises(SystemExit) as caught:
        maker.make_service(options, lambda: build)
    return caught.value.code
