"""A fast SMTP sink that offers STARTTLS and counts: `python -m benchmarks.sinks.encrypting PEM PORT`.

It stands where `smtp-sink`, which has no TLS, stands without it: it takes everything, offers PIPELINING, 8BITMIME and, in
plain text, STARTTLS with the certificate and key in PEM, and lets sessions be resumed by tickets. Its counter is the last
line of its output, `sess=1 quit=2 full=1 resumed=3 mesg=4`, ended by CR and written after each round of events in which it
changed. It is an instrument for one trusted peer: one thread, commands are barely checked.
"""

from __future__ import annotations

import select
import signal
import socket
import ssl
import sys

GREETING = b"220 sink.bench.example ESMTP\r\n"
OFFERS = b"250-sink.bench.example\r\n250-PIPELINING\r\n250-8BITMIME\r\n"
END = b"\r\n.\r\n"
BACKLOG = 1000
ROOM = 1 << 17


class Counter:
    """What the sink has seen."""

    def __init__(self) -> None:
        self.sessions = self.quits = self.full = self.resumed = self.messages = 0

    def line(self) -> str:
        """As printed."""
        return f"sess={self.sessions} quit={self.quits} full={self.full} resumed={self.resumed} mesg={self.messages}\r"


class Dialogue:
    """One session without its socket: bytes in, replies out. `wants_tls`: STARTTLS was accepted, and no byte counts before
    TLS."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._buffer = bytearray()
        self._is_content = False
        self.is_tls = self.wants_tls = self.is_over = False

    def begin_tls(self) -> None:
        """TLS is there."""
        self.is_tls, self.wants_tls = True, False
        self._buffer.clear()

    def receive(self, data: bytes) -> bytes:
        """Take bytes; return all replies that they have."""
        buffer, replies = self._buffer, []
        buffer += data
        while not (self.wants_tls or self.is_over):
            if self._is_content:
                at = buffer.find(END)
                if at < 0:
                    del buffer[: -len(END) + 1]
                    break
                del buffer[: at + len(END)]
                self._is_content = False
                self._counter.messages += 1
                replies.append(b"250 2.0.0 Ok\r\n")
                continue
            line, end, _ = buffer.partition(b"\r\n")
            if not end:
                break
            del buffer[: len(line) + (0 if line[:4].upper() == b"DATA" else 2)]  # an end may follow this line's CRLF
            replies.append(self._reply(bytes(line[:4]).upper()))
        return b"".join(replies)

    def _reply(self, verb: bytes) -> bytes:
        if verb == b"DATA":
            self._is_content = True
            return b"354 End data with <CR><LF>.<CR><LF>\r\n"
        if verb == b"EHLO":
            return OFFERS + (b"250 ENHANCEDSTATUSCODES\r\n" if self.is_tls else b"250 STARTTLS\r\n")
        if verb == b"STAR" and not self.is_tls:
            self.wants_tls = True
            return b"220 2.0.0 Ready\r\n"
        if verb == b"QUIT":
            self.is_over = True
            self._counter.quits += 1
            return b"221 2.0.0 Bye\r\n"
        return b"250 2.0.0 Ok\r\n"


class Connection:
    """One connection. `context`: of its TLS."""

    def __init__(self, tcp: socket.socket, context: ssl.SSLContext, counter: Counter) -> None:
        tcp.setblocking(False)
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket, self._context, self._counter = tcp, context, counter
        self._dialogue = Dialogue(counter)
        self._is_shaking = False
        counter.sessions += 1
        tcp.send(GREETING)

    def act(self) -> bool:
        """Take what the socket has. Return whether it is still open."""
        try:
            if self._is_shaking and not self._shake():
                return True
            return self._read()
        except (ssl.SSLWantReadError, BlockingIOError):
            return True
        except OSError:
            return False

    def _read(self) -> bool:
        dialogue = self._dialogue
        while data := self.socket.recv(ROOM):
            replies = dialogue.receive(data)
            if replies:
                self.socket.send(replies)
            if dialogue.is_over:
                return False
            if dialogue.wants_tls:
                self.socket = self._context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
                self._is_shaking = True
                return True
        return False

    def _shake(self) -> bool:
        assert isinstance(self.socket, ssl.SSLSocket)
        self.socket.do_handshake()
        if self.socket.session_reused:
            self._counter.resumed += 1
        else:
            self._counter.full += 1
        self._dialogue.begin_tls()
        self._is_shaking = False
        return True


def serve(pem: str, port: int) -> None:
    """Serve until a signal ends the process."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    counter, connections = Counter(), dict[int, Connection]()
    with socket.create_server(("127.0.0.1", port), backlog=BACKLOG) as listener, select.epoll() as events:
        listener.setblocking(False)
        events.register(listener.fileno(), select.EPOLLIN)
        told = ""
        while True:
            for number, _ in events.poll():
                if number == listener.fileno():
                    while (made := _accept(listener)) is not None:
                        connections[made.fileno()] = Connection(made, context, counter)
                        events.register(made.fileno(), select.EPOLLIN)
                elif not connections[number].act():
                    events.unregister(number)
                    connections.pop(number).socket.close()
            line = counter.line()
            if line != told:
                sys.stdout.write(line)
                sys.stdout.flush()
                told = line


def _accept(listener: socket.socket) -> socket.socket | None:
    try:
        return listener.accept()[0]
    except BlockingIOError:
        return None


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    serve(sys.argv[1], int(sys.argv[2]))
