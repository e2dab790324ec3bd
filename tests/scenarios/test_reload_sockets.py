"""SIGHUP and the whole program: what changes at once, what is kept, what refuses the file."""

from __future__ import annotations

import os
import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509

from mailismus.__main__ import main
from tests.project.runners import with_code_before
from tests.scenarios.mailserver import MailServer, configure, install_certificate, serving

RELAY_CLIENTS = "<relay_clients>127.0.0.1</relay_clients>"


@contextmanager
def client_of(server: MailServer) -> Iterator[smtplib.SMTP]:
    with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=20) as client:
        client.ehlo()
        yield client


@contextmanager
def sink() -> Iterator[int]:
    """A server that takes one message; its port."""
    answers = {b"E": b"250 sink\r\n", b"M": b"250 ok\r\n", b"R": b"250 ok\r\n", b"D": b"354 go\r\n", b".": b"250 ok\r\n"}

    def serve() -> None:
        connection, _ = listening.accept()
        with connection, connection.makefile("rb") as lines:
            connection.sendall(b"220 sink\r\n")
            is_content = False
            for line in lines:
                is_content = is_content and line != b".\r\n"
                if not is_content:
                    connection.sendall(answers.get(line[:1], b"221 bye\r\n"))
                is_content = is_content or line.startswith(b"DATA")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]


def secure(client: smtplib.SMTP) -> x509.Certificate:
    """STARTTLS; the certificate that was shown."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    client.starttls(context=context)
    assert isinstance(client.sock, ssl.SSLSocket)
    shown = client.sock.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown)


def test_a_new_certificate_is_for_new_connections_and_old_ones_go_on(tmp_path: Path) -> None:
    configure(tmp_path)
    with serving(tmp_path) as server, client_of(server) as old, client_of(server) as waiting:
        assert secure(old) == server.certificate.certificate
        new = install_certificate(tmp_path, "new.example")
        text = server.hang_up("reloaded: ")
        assert "listener/ssl/certificate" in text
        with client_of(server) as client:
            assert secure(client) == new.certificate
            assert not client.sendmail("a@x.example", ["joe@our.example"], b"new")
        assert not old.sendmail("a@x.example", ["joe@our.example"], b"old")
        assert secure(waiting) == server.certificate.certificate
        assert not waiting.sendmail("a@x.example", ["joe@our.example"], b"waiting")


def test_tls_comes_with_a_reload_and_goes_with_one(tmp_path: Path) -> None:
    configure(tmp_path, ssl="", more="")
    with serving(tmp_path) as server, client_of(server) as old:
        configure(tmp_path, more="")
        server.hang_up("reloaded: ")
        assert old.docmd("STARTTLS")[0] == 502
        with client_of(server) as client:
            secure(client)
            configure(tmp_path, ssl="", more="")
            server.hang_up("reloaded: ")
            assert client.noop()[0] == 250
        with client_of(server) as client:
            assert not client.has_extn("starttls")


def break_file(directory: Path) -> None:
    path = directory / "mailismus.xml"
    path.write_text(path.read_text().replace("minfree>", "minfrei>"))


def break_key(directory: Path) -> None:
    old = (directory / "cert.pem").read_bytes()
    install_certificate(directory)
    (directory / "cert.pem").write_bytes(old)


def move_queue(directory: Path) -> None:
    path = directory / "mailismus.xml"
    path.write_text(path.read_text().replace("<queue>", "<queue><rootpath>elsewhere</rootpath>"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MailServer]:
    """A server that bad files must leave as it is, one after the other."""
    directory = tmp_path_factory.mktemp("plain")
    configure(directory)
    with serving(directory) as server:
        yield server


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (break_file, ":4: <minfrei> is not known in <queue>"),
        (break_key, ":6: <privatekey>: it is not the key of the first certificate"),
        (move_queue, ":4: mta/queue/rootpath ("),
        (lambda directory: (directory / "mailismus.xml").unlink(), ": the configuration file can't be read: No such file"),
    ],
)
def test_a_bad_file_changes_nothing(plain: MailServer, spoil: object, words: str) -> None:
    directory = plain.directory
    configure(directory, server="<maxrecips>1</maxrecips>")
    assert callable(spoil)
    spoil(directory)
    text = plain.hang_up("the old configuration stays in force")
    assert f"{directory}/mailismus.xml{words}" in text
    with client_of(plain) as client:
        assert secure(client) == plain.certificate.certificate
        assert not client.sendmail("a@x.example", ["joe@our.example", "postmaster@our.example"], b"x")
    configure(directory)
    (directory / "cert.pem").write_bytes(plain.certificate.pem)
    (directory / "key.pem").write_bytes(plain.certificate.key_pem)
    plain.hang_up("reloaded: nothing changed")


def test_limits_users_and_relay_clients_change_at_once(tmp_path: Path) -> None:
    configure(tmp_path)
    with serving(tmp_path) as server, client_of(server) as old:
        old.mail("a@x.example")
        assert old.rcpt("b@far.example")[0] == 554
        configure(tmp_path, server=RELAY_CLIENTS + "<maxrecips>1</maxrecips>")
        text = (tmp_path / "mailismus.xml").read_text()
        (tmp_path / "mailismus.xml").write_text(text.replace("<users>joe", "<users>joe | jane"))
        line = server.hang_up("reloaded: ")
        for name in ("directory/users", "listener/server/relay_clients", "listener/server/maxrecips"):
            assert name in line
        assert old.rcpt("b@far.example")[0] == 554, "a transaction keeps the rules that it began with"
        old.rset()
        old.mail("a@x.example")
        assert old.rcpt("jane@our.example")[0] == 250
        assert old.rcpt("joe@our.example")[0] == 452
        old.rset()
        old.mail("a@x.example")
        assert old.rcpt("b@far.example")[0] == 250


def test_a_mended_relay_frees_what_was_stuck(tmp_path: Path) -> None:
    dead = '<relays><relay address="127.0.0.1:9"/></relays><client><timeout_connect>1s</timeout_connect></client>'
    configure(tmp_path, server=RELAY_CLIENTS, deliver=dead)
    text = (tmp_path / "mailismus.xml").read_text()
    retry = "<queue><retry_delays>1s</retry_delays>"
    (tmp_path / "mailismus.xml").write_text(text.replace("<queue>", retry))
    with serving(tmp_path) as server:
        with client_of(server) as client:
            client.sendmail("a@x.example", ["b@far.example"], b"Subject: s\r\n\r\nx\r\n")
        server.await_text("status=deferred")
        with sink() as port:
            text = (tmp_path / "mailismus.xml").read_text()
            (tmp_path / "mailismus.xml").write_text(text.replace("127.0.0.1:9", f"127.0.0.1:{port}"))
            assert "mta/deliver/relays/relay/@address" in server.hang_up("reloaded: ")
            assert f"relay=127.0.0.1[127.0.0.1]:{port}" in server.await_text("status=sent")


@pytest.fixture(scope="module")
def with_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MailServer]:
    """A server that reads four files."""
    directory = tmp_path_factory.mktemp("users")
    configure(directory)
    text = (directory / "mailismus.xml").read_text().replace("<users>joe", "<users>./users")
    (directory / "mailismus.xml").write_text(text)
    (directory / "users").write_text("joe\n")
    with serving(directory) as server:
        yield server


@pytest.mark.parametrize("name", ["mailismus.xml", "users", "cert.pem", "key.pem"])
def test_a_fifo_is_refused_and_mail_goes_on(with_users: MailServer, name: str) -> None:
    directory = with_users.directory
    (directory / name).rename(directory / "old")
    os.mkfifo(directory / name)
    said = with_users.hang_up("the old configuration stays in force")
    assert "it is a FIFO, and only regular files are read" in said
    with client_of(with_users) as client:
        assert not client.sendmail("a@x.example", ["joe@our.example"], b"x")
    (directory / name).unlink()
    (directory / "old").rename(directory / name)
    with_users.hang_up("reloaded: nothing changed")


HANGING = """
import time
from mailismus.config.read import files
from mailismus.start import reload
reload.LOOK_S = files.ANSWER_S = 0.1
def read(path, max_bytes, on_piece):
    import os
    while os.path.exists(path + ".hangs"):
        time.sleep(0.05)
    return files.read_regular(path, max_bytes, on_piece)
files.Files.__init__.__defaults__ = (read, time.monotonic)
"""


@pytest.mark.parametrize("does_answer", [False, True])
def test_a_file_that_does_not_answer_is_named_and_neither_mail_nor_the_stop_waits_for_it(
    tmp_path: Path, does_answer: bool
) -> None:
    configure(tmp_path)
    words = [*with_code_before("foreground", HANGING), "mailismus", "--config", str(tmp_path / "mailismus.xml")]
    with serving(tmp_path, words) as server:
        (tmp_path / "key.pem.hangs").touch()
        for _ in range(3):
            said = server.hang_up("the old configuration stays in force")
            assert f":6: {tmp_path}/key.pem does not answer" in said
        with client_of(server) as client:
            assert not client.sendmail("a@x.example", ["joe@our.example"], b"x")
        if does_answer:
            before = len(server.output.read_text())
            (tmp_path / "key.pem.hangs").unlink()
            server.await_new("answers again; send SIGHUP", before)
            server.hang_up("reloaded: nothing changed")


def test_a_setting_is_set_by_its_path_and_the_comparison_finds_it_until_the_reload(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def config(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        status = main(["--config", str(tmp_path / "mailismus.xml"), "config", *words])
        return status, capsys.readouterr().out

    configure(tmp_path)
    with serving(tmp_path) as server:
        assert config("diff")[0] == 0
        assert config("set", "mta/submit/listeners/listener[1]/server/maxrecips", "7")[0] == 0
        status, out = config("diff")
        assert (status, out.partition(":")[0]) == (1, "mta/submit/listeners/listener[1]/server/maxrecips")
        assert '"1000" in the running server, "7" in ' in out
        install_certificate(tmp_path)
        assert "listener[1]/ssl/certificate: the file that it names holds something else" in config("diff")[1]
        server.hang_up("reloaded: ")
        assert config("diff")[0] == 0
