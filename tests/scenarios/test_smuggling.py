"""The smuggling matrix: what might be taken for an end of data, by clients that are trusted and others, cut into packets in
several ways; in through the real server, out through the real client and into a maildir.

One message in is one message out, byte for byte, or it is refused; what stands behind the fake end is never run as commands.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.fakes.evil import Sinks
from tests.project.runners import ROOT, environment
from tests.scenarios.mailserver import MailServer, configure, serving

REFUSED, WHOLE, ENDS, REFUSED_ENDS = "refused", "whole", "ends", "refused, and ends"
NUL = b"\0"

ENDS_OF_DATA: dict[str, tuple[bytes, str]] = {
    "CRLF . CRLF": (b"\r\n.\r\n", ENDS),  # the only one; what follows is run, which shows that this test can see it
    "LF . LF": (b"\n.\n", REFUSED),
    "LF . CRLF": (b"\n.\r\n", REFUSED),
    "CRLF . LF": (b"\r\n.\n", REFUSED),
    "CR . CR": (b"\r.\r", REFUSED),
    "CR . LF": (b"\r.\n", REFUSED),
    "LF . CR": (b"\n.\r", REFUSED),
    "CR . CRLF": (b"\r.\r\n", REFUSED),
    "CRLF . CR": (b"\r\n.\r", REFUSED),
    "CRLF . CR CRLF": (b"\r\n.\r\r\n", REFUSED),
    "CR CRLF . CRLF": (b"\r\r\n.\r\n", REFUSED_ENDS),  # the last five bytes are the true end
    "LF CRLF . CRLF": (b"\n\r\n.\r\n", REFUSED_ENDS),
    "LF CR . LF CR": (b"\n\r.\n\r", REFUSED),
    "CRLF . LF CR": (b"\r\n.\n\r", REFUSED),
    "CRLF NUL . CRLF": (b"\r\n" + NUL + b".\r\n", REFUSED),
    "CRLF . NUL CRLF": (b"\r\n." + NUL + b"\r\n", REFUSED),
    "CR NUL LF . CR NUL LF": (b"\r\0\n.\r\0\n", REFUSED),
    "NUL": (NUL, REFUSED),
    "LF": (b"\n", REFUSED),
    "CR": (b"\r", REFUSED),
    "LF LF": (b"\n\n", REFUSED),
    "CRLF . blank CRLF": (b"\r\n. \r\n", WHOLE),
    "CRLF . TAB CRLF": (b"\r\n.\t\r\n", WHOLE),
    "CRLF blank . CRLF": (b"\r\n .\r\n", WHOLE),
    "CRLF .. CRLF": (b"\r\n..\r\n", WHOLE),
    "CRLF ... CRLF": (b"\r\n...\r\n", WHOLE),
    "CRLF .x CRLF": (b"\r\n.x\r\n", WHOLE),
    "CRLF CRLF": (b"\r\n\r\n", WHOLE),
    "CRLF BS . CRLF": (b"\r\n\b.\r\n", WHOLE),
    "CRLF DEL . CRLF": (b"\r\n\x7f.\r\n", WHOLE),
    "CRLF 0xAE CRLF": (b"\r\n\xae\r\n", WHOLE),  # a dot with its eighth bit set
    "0x8D 0x8A . 0x8D 0x8A": (b"\x8d\x8a.\x8d\x8a", WHOLE),
    "VT . VT": (b"\x0b.\x0b", WHOLE),
    "FF . FF": (b"\x0c.\x0c", WHOLE),
    "FS . FS": (b"\x1c.\x1c", WHOLE),
    "GS . GS": (b"\x1d.\x1d", WHOLE),
    "RS . RS": (b"\x1e.\x1e", WHOLE),
    "US . US": (b"\x1f.\x1f", WHOLE),
    "NEL . NEL": (b"\x85.\x85", WHOLE),
    "NEL . NEL in UTF-8": ("\x85.\x85".encode(), WHOLE),
    "U+2028 . U+2028": ("\u2028.\u2028".encode(), WHOLE),
    "U+2029 . U+2029": ("\u2029.\u2029".encode(), WHOLE),
    "overlong CRLF . CRLF in UTF-8": (b"\xc0\x8d\xc0\x8a.\xc0\x8d\xc0\x8a", WHOLE),
}
SMUGGLED = (
    b"MAIL FROM:<evil@x.example>\r\nRCPT TO:<joe@our.example>\r\nRCPT TO:<victim@far.example>\r\nDATA\r\n"
    b"Subject: smuggled\r\n\r\nevil"
)
TRUE_END = b"\r\n.\r\n"


def in_one(wire: bytes, at: int, size: int) -> Iterator[bytes]:
    yield wire


def cut_within(wire: bytes, at: int, size: int) -> Iterator[bytes]:
    """Each byte of the variant in a packet of its own."""
    yield wire[:at]
    for place in range(at, at + size):
        yield wire[place : place + 1]
    yield wire[at + size :]


def byte_by_byte(wire: bytes, at: int, size: int) -> Iterator[bytes]:
    for place in range(len(wire)):
        yield wire[place : place + 1]


CUTS = {"in one": in_one, "cut within": cut_within, "byte by byte": byte_by_byte}
CLIENTS = {
    "trusted": ("SMTP", [b"joe@our.example", b"r@far.example"]),
    "untrusted": ("OTHERS", [b"joe@our.example"]),
}


class Session:
    """A client with its socket."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.heard = b""

    def hear(self, end: bytes) -> None:
        """Listens until the last line begins like this."""
        while not (self.heard.endswith(b"\r\n") and self.heard[:-2].rpartition(b"\n")[2].startswith(end)):
            piece = self._socket.recv(65536)
            assert piece, self.heard
            self.heard += piece

    def say(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        self._socket.close()


def send(port: int, recipients: list[bytes], subject: bytes, variant: bytes, cut: str) -> tuple[bytes, bytes]:
    """One message with the variant and what shall be smuggled behind it. Gives its content and the replies to all behind
    DATA, the one to QUIT included."""
    before = b"Subject: " + subject + b"\r\n\r\nbefore"
    content = before + variant + SMUGGLED
    session = Session(port)
    session.hear(b"220 ")
    envelope = b"MAIL FROM:<a@x.example>\r\n" + b"".join(b"RCPT TO:<" + recipient + b">\r\n" for recipient in recipients)
    session.say(b"EHLO c.example\r\n" + envelope + b"DATA\r\n")
    session.hear(b"354 ")
    session.heard = b""
    for piece in CUTS[cut](content + TRUE_END + b"QUIT\r\n", len(before), len(variant)):
        session.say(piece)
    session.hear(b"221 ")
    session.close()
    return content + b"\r\n", session.heard


def outgone(server: MailServer) -> list[object]:
    """Waits until the queue holds nothing more that is to go out, some seconds at most; gives what is left."""
    command = [
        sys.executable,
        "-m",
        "mailismus",
        "--config",
        str(server.directory / "mailismus.xml"),
        "queue",
        "list",
        "--json",
    ]
    for _ in range(100):
        ran = subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, check=True, timeout=60)
        left = [json.loads(line) for line in ran.stdout.splitlines()]
        if not left:
            break
        time.sleep(0.2)
    return left


def without_trace(content: bytes) -> bytes:
    """Without the one field that a server adds."""
    lines = content.split(b"\n")
    assert lines[0].startswith(b"Received: from c.example ")
    last = next(number for number in range(1, len(lines)) if lines[number][:1] not in b" \t")
    return b"\n".join(lines[last:])


def test_one_message_in_is_one_message_out_or_none(tmp_path: Path) -> None:
    sinks = Sinks()
    port = sinks.add()
    configure(
        tmp_path,
        ssl="",
        server="<relay_clients>127.0.0.1</relay_clients>",
        more='<listener name="OTHERS" interface="127.0.0.1" port="0"/>',
        deliver=f'<relays><relay address="127.0.0.1:{port}"/></relays>',
    )
    expected: dict[bytes, tuple[bytes, list[bytes]]] = {}  # by subject: content, recipients
    smuggled = dict.fromkeys(CLIENTS, 0)  # what was said behind a true end, and so is a message like any other
    wrong = []
    with sinks, serving(tmp_path) as server:
        for client, (listener, recipients) in CLIENTS.items():
            for name, (variant, fate) in ENDS_OF_DATA.items():
                for cut in CUTS:
                    subject = f"{name}, {client}, {cut}".encode()
                    content, heard = send(server.ports[listener], recipients, subject, variant, cut)
                    codes = [line[:9] for line in heard.splitlines()]
                    if fate == REFUSED:
                        right = codes == [b"550 5.6.0", b"221 2.0.0"]
                    elif fate == WHOLE:
                        expected[subject] = content, recipients
                        right = codes == [b"250 2.0.0", b"221 2.0.0"]
                    elif fate == REFUSED_ENDS:
                        smuggled[client] += 1
                        right = codes[0] == b"550 5.6.0" and heard.count(b"250 2.0.0 Ok: queued as ") == 1
                    else:
                        expected[subject] = content[: content.index(TRUE_END) + 2], recipients
                        smuggled[client] += 1
                        right = heard.count(b"354 ") == 1 and heard.count(b"250 2.0.0 Ok: queued as ") == 2
                    if not right:
                        wrong.append((subject, heard))
        assert not wrong, "\n".join(map(str, wrong))
        assert outgone(server) == []
        text = server.output.read_text("latin-1")
    # In: as many transactions as there were messages, and none of them from whom was smuggled but behind the true end.
    assert text.count("from=<evil@x.example>, ") == sum(smuggled.values())
    assert text.count("NOQUEUE: reject: RCPT") == smuggled["untrusted"]  # a relay is none for others
    # Out, through the client: each once, byte for byte.
    evil = 0
    out: dict[bytes, list[bytes]] = {}
    for message in sinks.factories[port].received:
        assert message.content.count(b"\r") == message.content.count(b"\n") == message.content.count(b"\r\n")
        assert NUL not in message.content
        content = without_trace(message.content)
        if content.startswith(b"Subject: smuggled\r\n"):
            assert message.sender == b"evil@x.example"
            evil += 1
        else:
            out.setdefault(content.partition(b"\r\n")[0].removeprefix(b"Subject: "), []).append(content)
    assert out == {subject: [content] for subject, (content, recipients) in expected.items() if len(recipients) == 2}
    assert evil == smuggled["trusted"]
    # Out, into a maildir: each once, line ends and dots as in a file.
    files = [path.read_bytes() for path in (tmp_path / "var" / "ms" / "joe" / "Maildir" / "new").iterdir()]
    delivered: dict[bytes, list[bytes]] = {}
    for file in files:
        opening, _, rest = file.partition(b"Delivered-To: joe@our.example\n")
        assert opening in (b"Return-Path: <a@x.example>\n", b"Return-Path: <evil@x.example>\n")
        content = without_trace(rest)
        subject = content.partition(b"\n")[0].removeprefix(b"Subject: ")
        delivered.setdefault(subject, []).append(content)
    assert len(delivered.pop(b"smuggled")) == sum(smuggled.values())
    assert delivered == {
        subject: [content.replace(b"\r\n.", b"\r\n").replace(b"\r\n", b"\n")] for subject, (content, _) in expected.items()
    }
