"""TLS for clients over real sockets: Python's own client against the whole program."""

from __future__ import annotations

import re
import signal
import smtplib
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailismus.__main__ import main
from tests.fakes.certificates import Made, make_certificate
from tests.project.runners import await_text, running
from tests.project.runners import command as command_line
from tests.scenarios.mailserver import MANDATORY, MailServer, configure, serving

SENDER, RECIPIENT = "a@x.example", "joe@our.example"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MailServer]:
    configure(tmp_path)
    with serving(tmp_path) as running:
        yield running


def trusting(server: MailServer) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=server.certificate.pem.decode())


def delivered(server: MailServer, count: int) -> list[str]:
    """The messages in joe's maildir, once there are so many."""
    new = server.directory / "var/ms/joe/Maildir/new"
    server.await_text("status=sent")
    while len(list(new.glob("*"))) < count:
        assert server.process.poll() is None
    return [path.read_text() for path in new.glob("*")]


def raw(server: MailServer, name: str = "SMTP") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", server.ports[name]), 20)
    made.settimeout(20)
    return made


def read_until(connection: socket.socket, end: bytes) -> bytes:
    data = b""
    while end not in data:
        piece = connection.recv(65536)
        assert piece, data
        data += piece
    return data


def ask_for_tls(server: MailServer) -> socket.socket:
    """A connection on which the handshake is to begin."""
    connection = raw(server)
    read_until(connection, b"220 ")
    connection.sendall(b"EHLO c.example\r\nSTARTTLS\r\n")
    read_until(connection, b"\r\n220 2.0.0 Ready to start TLS\r\n")
    return connection


def wrap(server: MailServer, connection: socket.socket) -> ssl.SSLSocket:
    return trusting(server).wrap_socket(connection, server_hostname="mx.example")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_ordinary_client_sends_by_starttls(server: MailServer, version: ssl.TLSVersion) -> None:
    context = trusting(server)
    context.maximum_version = version
    with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], "client.example", timeout=20) as client:
        client._host = "mx.example"  # type: ignore[attr-defined]  # the name that the certificate must have
        client.ehlo()
        assert client.has_extn("starttls")
        client.starttls(context=context)
        client.ehlo()
        assert not client.has_extn("starttls")
        assert client.docmd("STARTTLS")[0] == 503
        for size in (10, 300_000):
            assert not client.sendmail(SENDER, [RECIPIENT], b"Subject: s\r\n\r\n" + b"0123456789\r\n" * (size // 12))
    server.await_text("proto=ESMTPS")
    for text in delivered(server, 2):
        field = re.search(
            r"from client\.example \(\[127\.0\.0\.1\]\)\n\t\(using (.*)\)\n\tby mx.example with ESMTPS id", text
        )
        assert field is not None, text
        assert field[1].startswith(version.name.replace("_", ".") + " with cipher ")


def test_an_ordinary_client_sends_by_tls_from_the_start(server: MailServer) -> None:
    with smtplib.SMTP_SSL("127.0.0.1", server.ports["TLS"], "client.example", timeout=20, context=loose()) as client:
        client.ehlo()
        assert not client.has_extn("starttls")
        assert not client.sendmail(SENDER, [RECIPIENT], b"Subject: s\r\n\r\nx\r\n")
    assert "with ESMTPS id" in delivered(server, 1)[0]


def loose() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def test_commands_in_the_same_packet_behind_starttls_are_not_run(server: MailServer) -> None:
    connection = raw(server)
    read_until(connection, b"220 ")
    connection.sendall(b"EHLO c.example\r\n")
    read_until(connection, b"250 ")
    smuggled = b"EHLO evil.example\r\nMAIL FROM:<evil@x.example>\r\nRCPT TO:<joe@our.example>\r\nDATA\r\nevil\r\n.\r\n"
    connection.sendall(b"STARTTLS\r\n" + smuggled)
    assert read_until(connection, b"\r\n") == b"220 2.0.0 Ready to start TLS\r\n"
    secured = wrap(server, connection)
    secured.sendall(b"NOOP\r\n")
    assert read_until(secured, b"\r\n") == b"250 2.0.0 Ok\r\n"
    for command in (b"RCPT TO:<joe@our.example>\r\n", b"MAIL FROM:<a@x.example>\r\n"):
        secured.sendall(command)
        assert read_until(secured, b"\r\n") == b"503 5.5.1 Bad sequence of commands\r\n"
    secured.sendall(b"EHLO c.example\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<joe@our.example>\r\nDATA\r\n")
    read_until(secured, b"354 ")
    secured.sendall(b"good\r\n.\r\nQUIT\r\n")
    read_until(secured, b"221 ")
    secured.close()
    (text,) = delivered(server, 1)
    assert "good" in text
    assert "evil" not in text
    assert "evil" not in server.output.read_text()


def test_commands_pipelined_under_tls_are_answered_in_order(server: MailServer) -> None:
    connection = ask_for_tls(server)
    secured = wrap(server, connection)
    secured.sendall(
        b"EHLO c.example\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<joe@our.example>\r\nDATA\r\n"
        + b"x" * 900
        + b"\r\n.\r\nQUIT\r\n"
    )
    replies = b""
    while piece := secured.recv(65536):
        replies += piece
    assert [line[:4] for line in replies.splitlines()[-6:]] == [b"250 ", b"250 ", b"250 ", b"354 ", b"250 ", b"221 "]


def test_where_tls_is_mandatory_no_mail_is_taken_before(tmp_path: Path) -> None:
    configure(tmp_path, ssl=MANDATORY)
    with serving(tmp_path) as server, smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=20) as client:
        client._host = "mx.example"  # type: ignore[attr-defined]  # as above
        assert client.docmd("MAIL", "FROM:<a@x.example>") == (530, b"5.7.0 Must issue a STARTTLS command first")
        assert client.helo()[0] == 530
        client.ehlo()
        client.starttls(context=trusting(server))
        assert not client.sendmail(SENDER, [RECIPIENT], b"x")


def test_a_handshake_that_fails_is_one_line_and_ends_the_connection(server: MailServer) -> None:
    connection = ask_for_tls(server)
    connection.sendall(b"EHLO again.example\r\n")
    while connection.recv(65536):
        pass
    text = server.await_text("TLS handshake failed: client=unknown[127.0.0.1]: ")
    assert text.count("TLS handshake failed") == 1
    plain = raw(server, "TLS")
    plain.sendall(b"EHLO plain.example\r\n")
    while plain.recv(65536):
        pass


def drip(connection: socket.socket) -> None:
    """Bytes of a handshake, one at a time, until the other side has enough."""
    connection.settimeout(0.05)
    while True:
        connection.send(b"\x16")
        try:
            assert not connection.recv(65536)
        except TimeoutError:
            continue
        raise ConnectionResetError


def flood(connection: socket.socket, limit: int) -> None:
    sent = 0
    while sent < limit:
        sent += connection.send(b"EHLO c.example\r\n" * 1000)


def test_a_handshake_has_its_time(tmp_path: Path) -> None:
    configure(tmp_path, server="<timeout>300ms</timeout>", more="")
    with serving(tmp_path) as server:
        connection = ask_for_tls(server)
        with pytest.raises(ConnectionError):
            drip(connection)
        server.await_text("TLS handshake failed: client=unknown[127.0.0.1]: not done in time")


def test_a_client_that_never_reads_does_not_fill_memory_under_tls(tmp_path: Path) -> None:
    configure(tmp_path, server="<maxbadreqs>0</maxbadreqs>")
    with serving(tmp_path) as server:
        connection = ask_for_tls(server)
        secured = wrap(server, connection)
        before = server.resident_kb()
        secured.settimeout(1)
        with pytest.raises(TimeoutError):
            flood(secured, 50_000_000)
        assert server.resident_kb() - before < 5000
        connection.close()


def test_a_stop_says_good_bye_under_tls(tmp_path: Path) -> None:
    configure(tmp_path)
    with serving(tmp_path) as server:
        connection = ask_for_tls(server)
        secured = wrap(server, connection)
        secured.sendall(b"EHLO c.example\r\n")
        read_until(secured, b"\r\n250 ")
        within = ask_for_tls(server)
        server.process.terminate()
        assert read_until(secured, b"\r\n") == b"421 4.3.2 Service shutting down\r\n"
        assert secured.recv(100) == b"", "the end is said"
        secured.close()
        within.close()


def test_it_is_told_how_a_message_came_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`queue show`: of a running server, of a stopped queue, and of a copy that has no configuration."""
    relay_clients = "<relay_clients>127.0.0.1</relay_clients>"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    deliver = f'<relays><relay address="127.0.0.1:{port}"/></relays>'  # nothing listens there
    configure(tmp_path, server=relay_clients, deliver=deliver)
    configured = ("--config", str(tmp_path / "mailismus.xml"), "queue", "show")

    def show(*words: str) -> str:
        assert main(words) == 0
        out = capsys.readouterr().out
        return "".join(line[14:] for line in out.splitlines() if line.startswith("protocol: "))

    with serving(tmp_path) as server:
        with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=20) as client:
            assert not client.sendmail(SENDER, ["far@x.example"], b"Subject: plain")
            client.starttls(context=unchecked())
            assert not client.sendmail(SENDER, ["far@x.example"], b"Subject: tls")
        server.await_text("0000000100000002: to=")
        plain, tls = "0000000100000001", "0000000100000002"
        assert show(*configured, plain) == "ESMTP"
        how = show(*configured, tls)
        assert re.fullmatch(r"ESMTPS, TLSv1\.3 with cipher TLS_\w+ \(\d+ bits\)", how)
    assert (show(*configured, plain), show(*configured, tls)) == ("ESMTP", how)
    for name in ("queue", "spool"):
        (tmp_path / "var" / name).rename(tmp_path / name)
    copied = ("queue", "show", "--queue", str(tmp_path / "queue"), "--spool", str(tmp_path / "spool"))
    assert (show(*copied, plain), show(*copied, tls)) == ("ESMTP", how)


def unchecked() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def test_the_end_of_a_certificate_is_a_metric_a_warning_and_a_log_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(tmp_path)
    path = tmp_path / "mailismus.xml"
    path.write_text(path.read_text().replace("</mailserver>", '<admin><metrics port="0"/></admin></mailserver>'))

    def scrape(server: MailServer) -> float:
        url = re.search(r"http://127\.0\.0\.1:\d+/metrics", server.await_text("Metrics are at "))
        assert url is not None
        with urllib.request.urlopen(url[0], timeout=30) as answer:
            name = f'mailismus_certificate_expiry_timestamp_seconds{{path="{tmp_path}/cert.pem"}} '
            (value,) = [line.removeprefix(name) for line in answer.read().decode().splitlines() if line.startswith(name)]
        return float(value)

    def end_of(made: Made) -> float:
        return made.certificate.not_valid_after_utc.timestamp()

    with serving(tmp_path) as server:
        assert scrape(server) == end_of(server.certificate)
        assert main(["--config", str(path), "config", "check"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert f"{path}: listener SMTP, listener TLS: certificate {tmp_path}/cert.pem ends " in lines[0]
        assert len([line for line in lines if "cert.pem" in line]) == 1
        assert ", in 89 days" in lines[0]
        new = make_certificate(days=12.5)
        (tmp_path / "cert.pem").write_bytes(new.pem)
        (tmp_path / "key.pem").write_bytes(new.key_pem)
        said = server.hang_up("reloaded: ")
        words = (
            f"certificate {tmp_path}/cert.pem of listener SMTP ends {new.certificate.not_valid_after_utc.date()}, in 12 days"
        )
        assert said.count(f"The {words}: replace it and send SIGHUP") == 1, "it has two listeners, and is one file"
        while (end := scrape(server)) == end_of(server.certificate):  # the page is a quarter of a second old at most
            assert server.process.poll() is None
        assert end == end_of(new)
        assert main(["--config", str(path), "config", "check"]) == 0
        out = capsys.readouterr().out
        both = words.replace("listener SMTP", "listener SMTP, listener TLS")
        assert out.count(f"{path}:6: warning: the {both}: replace it") == 1
        assert f"{path}: listener SMTP" not in out
    ended = make_certificate(days=-1.5)
    (tmp_path / "cert.pem").write_bytes(ended.pem)
    (tmp_path / "key.pem").write_bytes(ended.key_pem)
    with running(command_line("foreground", str(path)), tmp_path) as (process, output):
        assert ", 1 day ago: replace it and send SIGHUP" in await_text(output, "ready: ")
        process.send_signal(signal.SIGTERM)
        process.wait(60)
