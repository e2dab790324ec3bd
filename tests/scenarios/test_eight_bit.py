"""8-bit mail and addresses in UTF-8 on real sockets: the whole server, between clients and hosts that offer this or that."""

from __future__ import annotations

import email
import smtplib
import time
from pathlib import Path

from tests.fakes.evil import Sinks
from tests.fakes.sink import Received, Script
from tests.fakes.stuffing import unstuff
from tests.scenarios.mailserver import MailServer, configure, serving

HOSTS: dict[str, Script] = {
    "plain.example": {"EHLO": b"250-mx\r\n250 SIZE 0\r\n"},
    "eightbit.example": {"EHLO": b"250-mx\r\n250-PIPELINING\r\n250 8BITMIME\r\n"},
    "xn--bcher-kva.example": {"EHLO": b"250-mx\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n"},
}
SMALL = "Subject: s\r\n\r\nGrüße\r\n.dot\r\n".encode()
LARGE = b"Subject: s\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + "Grüße aus der Stadt\r\n.\r\n".encode() * 50_000
HEADER = "Subject: Grüße\r\n\r\nx\r\n".encode()


def outcomes(server: MailServer, count: int) -> list[str]:
    """The outcomes in the log, once there are so many."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        lines = server.output.read_text("ascii").splitlines()
        found = [line.partition("to=<")[2] for line in lines if "status=" in line and ">, relay=127" in line]
        if len(found) >= count:
            break
        time.sleep(0.05)
    assert len(found) == count
    return [line.partition(">")[0] + " " + line.partition("dsn=")[2] for line in found]


def body_of(received: Received) -> bytes:
    body = email.message_from_bytes(unstuff(received.content)).get_payload(decode=True)
    assert isinstance(body, bytes)
    return body


def test_each_host_gets_what_it_takes(tmp_path: Path) -> None:
    sinks = Sinks()
    ports = {domain: sinks.add(script) for domain, script in HOSTS.items()}
    relays = "".join(f'<relay address="127.0.0.1:{port}" destdomains="{domain}"/>' for domain, port in ports.items())
    configure(
        tmp_path,
        ssl="",
        more="",
        server="<relay_clients>127.0.0.1</relay_clients>",
        deliver=f"<relays>{relays}</relays><client><eightbit>convert</eightbit></client>",
        report="<delay_start>1h</delay_start>",
    )
    with sinks, serving(tmp_path) as server:
        with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=30) as client:
            for content in (SMALL, LARGE, HEADER):
                client.sendmail("s@far.example", ["a@plain.example", "b@plain.example"], content)
                client.sendmail("s@far.example", ["a@eightbit.example"], content)
            assert client.has_extn("smtputf8")
            options = ("SMTPUTF8", "BODY=8BITMIME")
            client.sendmail("s@bücher.example", ["a@bücher.example", "jörg@bücher.example"], HEADER, options)
            client.sendmail("s@bücher.example", ["c@plain.example", "jörg@plain.example"], SMALL, options)
            client.sendmail("s@far.example", ["d@eightbit.example"], HEADER, options)
        lines = outcomes(server, 14)
    refused = sorted(line.split(" (")[0] + line.rpartition("): ")[0][-20:] for line in lines if "status=sent" not in line)
    assert [line.partition(" ")[::2] for line in refused] == [
        ("a@plain.example", "5.6.9, status=bounced"),
        ("b@plain.example", "5.6.9, status=bounced"),
        ("d@eightbit.example", "5.6.9, status=bounced"),
        ("j\\xc3\\xb6rg@plain.example", "5.6.7, status=bounced"),
    ]
    plain, eightbit, utf8 = (sinks.factories[ports[domain]] for domain in HOSTS)
    assert all(received.content.isascii() for received in plain.received)
    bodies = sorted(map(body_of, plain.received), key=len)
    text = SMALL.partition(b"\r\n\r\n")[2]
    assert bodies == [text, text, LARGE.partition(b"\r\n\r\n")[2]]
    assert b"MAIL FROM:<s@xn--bcher-kva.example>" in {
        line.partition(b" SIZE")[0] for connection in plain.connections for line in connection.commands
    }
    assert sorted(unstuff(received.content).partition(b"+0000\r\n")[2] for received in eightbit.received) == sorted(
        [SMALL, LARGE, HEADER]
    )
    (got,) = utf8.received
    commands = [line for connection in utf8.connections for line in connection.commands if line[:4] in (b"MAIL", b"RCPT")]
    assert commands == [
        "MAIL FROM:<s@bücher.example> BODY=8BITMIME SMTPUTF8".encode(),
        "RCPT TO:<a@bücher.example>".encode(),
        "RCPT TO:<jörg@bücher.example>".encode(),
    ]
    assert b" with UTF8SMTP id " in got.content
