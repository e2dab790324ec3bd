"""Mail in over real sockets: a submitting task in a process of its own."""

from __future__ import annotations

import os
import resource
import signal
import smtplib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PATIENCE_S = 60.0
ROOT = Path(__file__).parent.parent.parent
ENVELOPE = b"EHLO c\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<joe@our.example>\r\n"


class Running:
    """The process; `port` once it listens."""

    def __init__(self, **options: int) -> None:
        command = [sys.executable, "-m", "tests.scenarios.submit_server", *(f"{k}={v}" for k, v in options.items())]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.sockets: list[socket.socket] = []

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S, (source, 0))
        made.settimeout(PATIENCE_S)
        self.sockets.append(made)
        return made

    def await_read(self) -> None:
        """Until the server has read what was sent so far: then it has, when a later client is answered."""
        with self.connect() as later:
            read_until(later, b"\r\n")
            later.sendall(b"EHLO later\r\n")
            read_until(later, b"\r\n")

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> tuple[int, int]:
        """SIGTERM; messages taken, pauses in accepting."""
        assert self.process.stdout is not None
        self.process.send_signal(signal.SIGTERM)
        taken, pauses = self.process.stdout.readline().split()
        assert self.process.wait(PATIENCE_S) == 0
        return int(taken), int(pauses)

    def close(self) -> None:
        for made in self.sockets:
            made.close()
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def server() -> Iterator[Running]:
    running = Running()
    yield running
    running.close()


def read_until(connection: socket.socket, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        piece = connection.recv(65536)
        assert piece, data
        data += piece
    return data


def read_all(connection: socket.socket) -> bytes:
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


def test_an_ordinary_client_sends_mail_of_all_sizes(server: Running) -> None:
    with smtplib.SMTP("127.0.0.1", server.port, timeout=PATIENCE_S) as client:
        client.ehlo()
        assert client.has_extn("pipelining")
        assert client.has_extn("8bitmime")
        assert client.esmtp_features["size"] == "1000000"
        for size in (0, 1, 1000, 100_000, 900_000):
            assert not client.sendmail(
                "a@x.example", ["joe@our.example", "b@y.example"], b"Subject: s\r\n\r\n" + b"x\r\n" * (size // 3)
            )
        with pytest.raises(smtplib.SMTPSenderRefused):
            client.sendmail("a@x.example", ["joe@our.example"], b"x" * 1_000_001)
        with pytest.raises(smtplib.SMTPRecipientsRefused):
            client.sendmail("a@x.example", ["nobody@our.example"], b"")
    assert server.stop()[0] == 5


def test_a_smuggled_message_is_none(server: Running) -> None:
    connection = server.connect()
    smuggled = b"\r\n.\nMAIL FROM:<evil@x.example>\r\nRCPT TO:<joe@our.example>\r\nDATA\r\nevil\r\n.\r\n"
    connection.sendall(ENVELOPE + b"DATA\r\nfirst" + smuggled + b"QUIT\r\n")
    replies = read_all(connection)
    assert replies.count(b"354 ") == 1
    assert b"550 5.6.0 " in replies
    assert server.stop()[0] == 0


def test_a_whole_session_may_come_in_one_packet_or_byte_by_byte(server: Running) -> None:
    wire = ENVELOPE + b"DATA\r\nx\r\n.\r\n" + ENVELOPE[8:] + b"DATA\r\n.\r\nQUIT\r\n"
    whole, slow = server.connect(), server.connect()
    slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    whole.sendall(wire)
    for byte in wire:
        slow.send(bytes([byte]))
    for connection in (whole, slow):
        replies = read_all(connection)
        assert replies.count(b"queued as") == 2
        assert replies.endswith(b"221 2.0.0 Bye\r\n")
    assert server.stop()[0] == 4


def test_a_client_that_vanishes_behind_the_dot_has_sent_its_mail(server: Running) -> None:
    connection = server.connect()
    connection.sendall(ENVELOPE + b"DATA\r\n")
    read_until(connection, b"<CR><LF>.<CR><LF>\r\n")
    connection.sendall(b"x\r\n.\r\n")
    connection.close()
    later = server.connect()
    later.sendall(ENVELOPE + b"DATA\r\ny\r\n.\r\nQUIT\r\n")
    assert b"queued as" in read_all(later)  # and so was what came before
    assert server.stop()[0] == 2


def test_a_stop_answers_what_is_behind_its_dot_and_cuts_the_rest_off() -> None:
    server = Running(durable_ms=300)
    try:
        behind, before, idle = (server.connect() for _ in range(3))
        idle.sendall(ENVELOPE)
        for connection in (behind, before):
            connection.sendall(ENVELOPE + b"DATA\r\n")
            read_until(connection, b"<CR><LF>.<CR><LF>\r\n")
        before.sendall(b"not the end\r\n")
        behind.sendall(b"x\r\n.\r\n")
        server.await_read()
        assert server.stop()[0] == 1
        assert b"queued as" in read_all(behind)
        for connection in (before, idle):
            assert read_all(connection).endswith(b"421 4.3.2 Service shutting down\r\n")
    finally:
        server.close()


def test_time_outs_of_a_tenth_of_a_second_are_kept() -> None:
    server = Running(timeout_ms=200)
    try:
        connection = server.connect()
        began = time.monotonic()
        assert read_all(connection).endswith(b"421 4.4.2 Timeout exceeded\r\n")
        assert time.monotonic() - began > 0.15
    finally:
        server.close()


def test_hundreds_of_slow_clients_do_not_keep_a_quick_one_from_its_mail(server: Running) -> None:
    slow = [server.connect() for _ in range(150)]
    for connection in slow:
        connection.sendall(b"EHLO sl")
    with smtplib.SMTP("127.0.0.1", server.port, timeout=PATIENCE_S) as client:
        for _ in range(20):
            assert not client.sendmail("a@x.example", ["joe@our.example"], b"Subject: s\r\n\r\nx\r\n")


def flood(connection: socket.socket, limit: int) -> None:
    sent = 0
    while sent < limit:
        sent += connection.send(b"EHLO c\r\n" * 1000)


def test_a_client_that_never_reads_does_not_fill_memory() -> None:
    server = Running(maxbadreqs=0)
    try:
        connection = server.connect()
        connection.settimeout(1)
        with pytest.raises(TimeoutError):
            flood(connection, 50_000_000)
        memory_kb = int(Path(f"/proc/{server.process.pid}/status").read_text().partition("VmRSS:")[2].split()[0])
        assert memory_kb < 150_000
    finally:
        server.close()


def test_without_descriptors_clients_wait_and_the_process_does_not_spin() -> None:
    server = Running(nofile=60, full_ms=1500)
    try:
        clients = [server.connect() for _ in range(20)]
        before, began = server.cpu_s(), time.monotonic()
        assert clients[0].recv(100).startswith(b"220 ")
        assert time.monotonic() - began > 0.5
        assert server.cpu_s() - before < 0.3
        assert clients[5].recv(100).startswith(b"220 ")
        assert server.stop()[1] > 0
    finally:
        server.close()


def test_the_last_descriptors_are_not_for_clients_who_are_told_and_may_come_back() -> None:
    server = Running(nofile=60)
    try:
        clients = [server.connect("127.0.0.2") for _ in range(60)]
        heard = [client.recv(100)[:4] for client in clients]
        refused = heard.count(b"421 ")
        assert heard == [b"220 "] * (60 - refused) + [b"421 "] * refused
        assert (
            len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())) <= 60 - 12
        )  # of the 16 kept, some are in use for a moment
        assert server.connect("127.0.0.1").recv(100).startswith(b"220 ")
        for client in clients:
            client.close()
        deadline = time.monotonic() + 10
        while not server.connect("127.0.0.2").recv(100).startswith(b"220 "):
            assert time.monotonic() < deadline
        assert server.stop()[1] == 0
    finally:
        server.close()


def test_a_limit_of_open_files_lowered_under_way_is_lived_with() -> None:
    server = Running(nofile=500)
    try:
        clients = [server.connect() for _ in range(100)]
        for client in clients:
            assert client.recv(100).startswith(b"220 ")
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (64, 500))
        before = server.cpu_s()
        waiting = server.connect()
        waiting.settimeout(1.5)
        with pytest.raises(TimeoutError):
            waiting.recv(100)
        assert server.cpu_s() - before < 0.3
        clients[0].sendall(ENVELOPE + b"DATA\r\nx\r\n.\r\nQUIT\r\n")
        assert b"queued as" in read_all(clients[0])
        for client in clients:
            client.close()
        waiting.settimeout(10)
        assert waiting.recv(100)[:4] in (b"220 ", b"421 ")
        with smtplib.SMTP("127.0.0.1", server.port, timeout=10) as mailer:
            assert not mailer.sendmail("a@x.example", ["joe@our.example"], b"Subject: s\r\n\r\nx\r\n")
    finally:
        server.close()


def test_strangers_lock_nobody_of_ours_out() -> None:
    server = Running(maxconnections=20, maxpeerconnections=10)
    try:
        strangers = [server.connect(f"127.0.1.{number}") for number in range(40)]
        greeted = [stranger for stranger in strangers if stranger.recv(100).startswith(b"220 ")]
        assert len(greeted) == 16
        with smtplib.SMTP("127.0.0.1", server.port, timeout=10) as client:
            assert not client.sendmail("a@x.example", ["joe@our.example"], b"Subject: s\r\n\r\nx\r\n")
    finally:
        server.close()


def test_one_address_has_its_number_of_connections() -> None:
    server = Running(maxpeerconnections=3)
    try:
        heard = [server.connect("127.0.0.7").recv(100)[:9] for _ in range(5)]
        assert heard == [b"220 mx.ex"] * 3 + [b"421 4.7.0"] * 2
        assert server.connect("127.0.0.8").recv(100).startswith(b"220 ")
    finally:
        server.close()


def test_who_talks_before_the_greeting_is_sent_away_at_once(server: Running) -> None:
    server.process.send_signal(signal.SIGSTOP)
    early, patient, ours = server.connect("127.0.0.2"), server.connect("127.0.0.2"), server.connect("127.0.0.1")
    early.sendall(ENVELOPE)
    ours.sendall(ENVELOPE)
    server.process.send_signal(signal.SIGCONT)
    assert read_all(early).startswith(b"554 5.5.0 ")
    assert patient.recv(100).startswith(b"220 ")
    assert read_until(ours, b"250 2.1.5 Ok\r\n").startswith(b"220 ")


def test_a_drip_in_commands_or_content_is_cut_off() -> None:
    server = Running(timeout_ms=500)
    try:
        command, content = server.connect(), server.connect()
        content.sendall(ENVELOPE + b"DATA\r\n")
        read_until(content, b"<CR><LF>.<CR><LF>\r\n")
        heard = {command: b"", content: b""}
        deadline = time.monotonic() + 10
        while not all(reply.endswith(b"\r\n") and b"421 " in reply for reply in heard.values()):
            assert time.monotonic() < deadline
            for connection in heard:
                if b"421 " not in heard[connection]:
                    connection.sendall(b"x")
                    connection.settimeout(0.05)
                    try:
                        heard[connection] += connection.recv(1000)
                    except TimeoutError:
                        pass
        assert heard[command].endswith(b"421 4.4.2 Timeout exceeded\r\n")
        assert heard[content].endswith(b"421 4.4.2 Data comes too slowly\r\n")
    finally:
        server.close()
