"""The commands with a server and without one: what ends with 0 arrives, once, and exit codes say why not."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mailismus.__main__ import main
from mailismus.admin.client.server import open_server
from mailismus.admin.protocol.wire import Request, encode_request
from mailismus.errors import StartError
from tests.sendmail.place import Place
from tests.support.processes import wait_until


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place where a server has run: there is no drop directory before the first start."""
    place = Place(tmp_path_factory.mktemp("stopped"))
    assert place.run("sendmail", "joe").returncode == os.EX_TEMPFAIL
    with place.server():
        pass
    return place


def test_a_running_server_takes_it_and_says_who_spoke(place: Place) -> None:
    with place.server() as server:
        done = place.run(
            "sendmail", "-t", "-i", "-v", "-FThe Boss", message=b"To: Joe <joe>\nBcc: root\nSubject: x\n\n.\n..\n"
        )
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(rb"queued as [0-9A-F]{16}\n", done.stdout)
        (mail,) = place.wait_for_mail(1)
        place.wait_for_mail(1, "root")
        noted = f"client=localhost[127.0.0.1], uid={os.getuid()}, proto=LOCAL"
        wait_until(lambda: noted in server.output.read_text(), 10, "the mail log names the user")
    lines = mail.splitlines()
    assert lines[2:4] == [
        b"Received: from localhost (uid %d)" % os.getuid(),
        b"\tby mx.example.net with LOCAL id " + done.stdout[10:-1] + b";",
    ]
    assert mail.endswith(b"\n\n.\n..\n")
    assert b"\nFrom: The Boss <" in mail
    assert b"\nDate: " in mail
    assert b"@mx.example.net>\n" in mail
    assert b"Bcc" not in mail
    assert place.dropped() == []


@pytest.mark.parametrize("provider", ["clustered", "log", "chunk"])
def test_without_a_server_it_waits_for_the_next_start_and_while_it_runs_for_a_second(tmp_path: Path, provider: str) -> None:
    place = Place(tmp_path, provider)
    with place.server():
        pass
    for number in range(3):
        done = place.run("sendmail", "-v", "-f", "joe", "joe", message=b"Subject: %d\n\nx\n" % number)
        assert done.returncode == 0, done.stderr
        assert b"no server takes it now" in done.stdout
    assert len(place.dropped()) == 3
    with place.server():
        place.wait_for_mail(3)
        os.rename(tmp_path / "sendmail" / "socket", tmp_path / "sendmail" / "hidden")
        assert place.run("sendmail", "joe", message=b"Subject: 3\n\nx\n").returncode == 0
        mail = place.wait_for_mail(4)
        wait_until(lambda: not place.dropped(), 10, "the drop directory is empty")
    assert sorted(re.findall(rb"\nSubject: (\d)\n", b"".join(mail))) == [b"0", b"1", b"2", b"3"]
    assert os.listdir(tmp_path / "sendmail" / "aside") == []


def test_an_unknown_user_is_told_at_once_or_reported_to_the_sender(place: Place) -> None:
    with place.server():
        done = place.run("sendmail", "nobody@our.example")
        assert (done.returncode, done.stdout) == (os.EX_DATAERR, b"")
        assert b"User unknown" in done.stderr
    assert place.run("sendmail", "-f", "joe", "nobody@our.example").returncode == 0
    with place.server():
        (report,) = place.wait_for_mail(1)
    assert b"Final-Recipient: rfc822; nobody@our.example" in report


def test_smtp_goes_the_same_ways(place: Place) -> None:
    text = b"EHLO x\r\nMAIL FROM:<joe@our.example>\r\nRCPT TO:<joe@our.example>\r\nDATA\r\nSubject: %d\r\n\r\n..\r\n.\r\n"
    with place.server():
        done = place.run("sendmail", "-bs", message=text % 1)
        assert re.search(rb"\n250 2.0.0 Ok: taken as [0-9A-F]{16}\r\n", done.stdout)
    assert b"\n250 2.0.0 Ok: taken as 1" in place.run("sendmail", "-bs", message=(text % 2).replace(b"\r", b"")).stdout
    with place.server():
        mail = place.wait_for_mail(2)
    assert all(one.endswith(b"\n\n.\n") for one in mail)


def test_smtp_that_ends_in_the_middle_is_no_success(stopped: Place) -> None:
    done = stopped.run("sendmail", "-bs", message=b"EHLO x\nMAIL FROM:<joe@our.example>\nRCPT TO:<joe>\nDATA\nhalf\n")
    assert done.returncode == os.EX_DATAERR
    assert b"standard input ended in the middle" in done.stderr
    assert stopped.dropped() == []


@pytest.mark.parametrize(
    ("words", "message", "status", "told"),
    [
        ("", b"x", os.EX_USAGE, "no recipients"),
        ("-t", b"Subject: x\n\n", os.EX_DATAERR, "no recipients"),
        ("-t", b"To: a b\n\n", os.EX_DATAERR, "field To"),
        ("-Z joe", b"x", os.EX_USAGE, "-Z is not known"),
        ("-bd", b"", os.EX_USAGE, "twistd"),
        ("a b@", b"x", os.EX_USAGE, "<b@> can't be a recipient"),
        ("-f a@ joe", b"x", os.EX_USAGE, "<a@> can't be a sender"),
        ("a b c d", b"x", os.EX_DATAERR, "3 are the limit"),
        ("joe", b"x" * 100_001, os.EX_DATAERR, "larger"),
        ("joe", b"a\0b", os.EX_DATAERR, "NUL"),
        ("joe", b"Received: x\n" * 51 + b"\nx", 0, ""),
        ("-C /nowhere joe", b"x", os.EX_CONFIG, "/nowhere"),
    ],
)
def test_exit_codes_without_a_server(stopped: Place, words: str, message: bytes, status: int, told: str) -> None:
    before = len(stopped.dropped())
    done = stopped.run("sendmail", *words.split(), message=message)
    assert (done.returncode, done.stdout) == (status, b"")
    assert told in done.stderr.decode()
    assert done.stderr.count(b"\n") == (status > 0)
    assert len(stopped.dropped()) - before == (status == 0)


def test_a_loop_that_was_dropped_is_put_aside_and_said(place: Place) -> None:
    with place.server():
        pass
    assert place.run("sendmail", "joe", message=b"Received: x\n" * 51 + b"\nx").returncode == 0
    with place.server() as server:
        wait_until(lambda: "is put aside: it is refused: 554 5.4.6" in server.output.read_text(), 20, "it is put aside")
    assert place.dropped() == []
    assert len(os.listdir(place.path / "sendmail" / "aside")) == 1


def test_a_configuration_without_it_is_named(place: Place) -> None:
    place.config.write_text("<mailserver/>")
    done = place.run("sendmail", "joe")
    assert done.returncode == os.EX_CONFIG
    assert b"write <sendmail/> into <submit>" in done.stderr


def test_the_queue_is_listed_and_flushed_by_other_names(place: Place) -> None:
    assert place.run("newaliases").returncode == 0
    assert place.run("sendmail", "-q").returncode == os.EX_UNAVAILABLE
    with place.server():
        assert place.run("sendmail", "far@away.example").returncode == 0
        wait_until(lambda: b"away.example" in place.run("mailq").stdout, 20, "it is listed")
        listed = place.run("mailq").stdout
        assert place.run("sendmail", "-bp").stdout.splitlines()[0] == listed.splitlines()[0]
        assert place.run("sendmail", "-qRaway.example").returncode == 0


def test_the_command_line_of_the_program_has_them_too(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    with place.server():
        pass
    assert main(["--config", str(place.config), "mailq"]) == 0
    assert "Mail queue is empty" in capfd.readouterr().out
    assert main([f"--config={place.config}", "sendmail", "-bd"]) == os.EX_USAGE
    assert "sendmail: -bd is not available" in capfd.readouterr().err
    assert main(["sendmail", "--help"]) == 0
    assert "exit codes:" in capfd.readouterr().out


def test_the_socket_of_users_takes_messages_alone(place: Place) -> None:
    with place.server():
        path = str(place.path / "sendmail" / "socket")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            client.sendall(encode_request(Request("list", ())))
            with client.makefile("rb") as lines:
                lines.readline()
                assert b"messages are taken at this socket" in lines.readline()


def test_a_denied_user_is_refused_by_the_server_and_the_command(tmp_path: Path) -> None:
    place = Place(tmp_path, more=f"<deny>{os.getuid()}</deny>")
    with place.server() as running:
        assert place.run("sendmail", "joe").returncode == os.EX_NOPERM
        server = open_server(str(tmp_path / "sendmail" / "socket"), lambda name: pytest.fail(name))
        assert server is not None
        with pytest.raises(StartError, match="<deny> or <allow>") as caught:
            server.inject(b"", [b"joe@our.example"], iter([b"x"]))
        server.close()
        assert caught.value.status == os.EX_NOPERM
        place.config.write_text(place.config.read_text().replace(f"<deny>{os.getuid()}", "<deny>no-such-user"))
        os.kill(running.pid, signal.SIGHUP)
        told = "names user no-such-user, whom this system does not know"
        wait_until(lambda: told in running.output.read_text(), 20, "the configuration is read again")
        assert place.run("sendmail", "joe").returncode == 0
        place.wait_for_mail(1)
    assert place.dropped() == []


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another user")
def test_another_user_reaches_both_and_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, *tmp_path.parents[:-1]):
        os.chmod(path, path.stat().st_mode | 0o011)
    place = Place(tmp_path)
    os.chmod(place.config, 0o644)
    os.chmod(place.config.parent, 0o755)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    # The interpreter may lie where only root can read. That helps to read, not to write.
    reads_all = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    run = [*nobody, *reads_all, *place.words("sendmail", "-v", "joe")]

    def send() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(run, input=b"Subject: x\n\nx", capture_output=True, env=place.environment, cwd="/", timeout=60)

    with place.server():
        done = send()
        assert done.stdout.startswith(b"queued as"), done
        (mail,) = place.wait_for_mail(1)
        assert b"Received: from localhost (uid 65534)\n" in mail
        assert b"Return-Path: <nobody@our.example>" in mail
    done = send()
    assert done.stdout.startswith(b"no server"), done
    (name,) = place.dropped()
    status = (tmp_path / "sendmail" / "drop" / name).stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (65534, os.getgid(), 0o640)
    with place.server():
        mails = place.wait_for_mail(2)
    assert all(b"(uid 65534)" in mail for mail in mails)
    listed = subprocess.run([*nobody, "ls", tmp_path / "sendmail" / "drop"], capture_output=True)
    assert b"Permission denied" in listed.stderr


def test_it_starts_without_the_server(place: Place) -> None:
    names = ("twisted.internet.reactor", "mailismus.app")
    code = f"import mailismus.programs, sys; print([name for name in {names} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=place.environment)
    assert done.stdout == b"[]\n"


def test_a_program_without_standard_error_finds_no_complaint_in_standard_output(place: Place) -> None:
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *place.words("sendmail", "-f", "a b", "joe@our.example")]
    done = subprocess.run(command, input=b"\nx\n", stdout=subprocess.PIPE, env=place.environment, timeout=60, cwd="/")
    assert done.returncode == os.EX_USAGE
    assert done.stdout == b""
