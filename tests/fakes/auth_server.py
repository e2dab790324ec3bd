"""An SMTP server of its own with TLS and AUTH, in threads: the mechanisms' other side, written from their RFCs.

It knows one user. `answers` says what it replies at the end of an exchange instead of what it should, by mechanism or for
`*`; it records commands as they came, exchanges, and messages.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import socket
import threading
from collections.abc import Callable
from types import TracebackType

from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL

from tests.fakes.certificates import Made

Answer = bytes | Callable[["AuthConnection"], bytes]


class AuthServer:
    """The server. `offers`: behind AUTH under TLS, None: it offers no AUTH; `offers_plain`: without TLS."""

    def __init__(
        self,
        made: Made,
        offers: bytes | None = b"SCRAM-SHA-256-PLUS SCRAM-SHA-256 PLAIN LOGIN XOAUTH2 CRAM-MD5",
        offers_plain: bytes | None = None,
        user: bytes = b"joe",
        password: bytes = b"s3cret-pass-phrase",
        token: bytes = b"ya29.s3cret-t0ken",
        has_starttls: bool = True,
        is_immediate: bool = False,
        is_tls_1_2: bool = False,
        iterations: int = 4096,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.offers, self.offers_plain = offers, offers_plain
        self.user, self.password, self.token = user, password, token
        self.has_starttls, self.iterations = has_starttls, iterations
        self.is_immediate = is_immediate
        """Whether TLS comes first."""
        self.made = made
        self.forges = False
        """Accept any proof of SCRAM, with a signature of its own making."""
        self.answers: dict[str, Answer] = {}
        self.connections: list[AuthConnection] = []
        self.messages: list[tuple[bytes, list[bytes], bytes]] = []
        self.context = SSL.Context(SSL.TLS_SERVER_METHOD)
        self.context.use_certificate(made.certificate)
        self.context.use_privatekey(load_pem_private_key(made.key_pem, None))  # type: ignore[arg-type]
        if is_tls_1_2:
            self.context.set_max_proto_version(SSL.TLS1_2_VERSION)
        self._listening = socket.create_server((host, port))
        self.port: int = self._listening.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def __enter__(self) -> AuthServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, and end all connections."""
        try:
            self._listening.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listening.close()
        for connection in self.connections:
            connection.end()
        for thread in self._threads:
            thread.join(10)

    @property
    def exchanges(self) -> list[str]:
        """The mechanisms of all AUTH commands, in order."""
        return [name for connection in self.connections for name in connection.exchanges]

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listening.accept()
            except OSError:
                return
            connection = AuthConnection(self, plain)
            self.connections.append(connection)
            thread = threading.Thread(target=connection.run, daemon=True)
            self._threads.append(thread)
            thread.start()


class AuthConnection:
    """One connection, in its own thread."""

    def __init__(self, server: AuthServer, plain: socket.socket) -> None:
        self.server, self._plain = server, plain
        self._tls: SSL.Connection | None = None
        self._buffer = b""
        self.commands: list[bytes] = []
        """Every line as it came, those of exchanges too."""
        self.exchanges: list[str] = []
        self.is_authenticated = False
        self.binding: tuple[bytes, bytes] = (b"", b"")
        self._sender, self._recipients = b"", [b""]

    def run(self) -> None:
        """Serve it to its end."""
        try:
            if self.server.is_immediate:
                self._start_tls()
            self.say(b"220 auth.example ESMTP")
            while self._serve(self.line()):
                pass
        except (OSError, SSL.Error, ConnectionError):
            pass
        self.end()

    def end(self) -> None:
        """Close it."""
        try:
            self._plain.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._plain.close()

    # ------------------------------------------------------------------ lines

    def say(self, *lines: bytes) -> None:
        """Send a reply as it stands."""
        data = b"".join(line + b"\r\n" for line in lines)
        if self._tls is None:
            self._plain.sendall(data)
        else:
            self._tls.sendall(data)

    def line(self) -> bytes:
        """The next line; what it holds."""
        while b"\r\n" not in self._buffer:
            data = self._plain.recv(65536) if self._tls is None else self._tls.recv(65536)
            if not data:
                raise ConnectionError
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        self.commands.append(line)
        return line

    # ------------------------------------------------------------------ commands

    def _serve(self, line: bytes) -> bool:
        verb = line.split(b" ")[0].upper()
        if verb == b"EHLO":
            self._ehlo()
        elif verb == b"STARTTLS":
            self.say(b"220 go ahead")
            self._start_tls()
        elif verb == b"AUTH":
            self._auth(line)
        elif verb == b"MAIL":
            self._sender, self._recipients = line[10:].split(b">")[0], []
            needs = self.server.offers is not None and not self.is_authenticated
            self.say(b"530 5.7.0 authentication required" if needs else b"250 2.1.0 ok")
        elif verb == b"RCPT":
            self._recipients.append(line[8:].split(b">")[0])
            self.say(b"250 2.1.5 ok")
        elif verb == b"DATA":
            self.say(b"354 go")
            content = []
            while (text := self.line()) != b".":
                content.append(text)
            self.server.messages.append((self._sender, self._recipients, b"\r\n".join(content)))
            self.say(b"250 2.0.0 taken")
        elif verb == b"QUIT":
            self.say(b"221 bye")
            return False
        else:
            self.say(b"250 2.0.0 ok")
        return True

    def _ehlo(self) -> None:
        lines = [b"auth.example", b"PIPELINING", b"8BITMIME"]
        offers = self.server.offers_plain if self._tls is None else self.server.offers
        if self._tls is None and self.server.has_starttls:
            lines.append(b"STARTTLS")
        if offers is not None:
            lines.append(b"AUTH " + offers)
        self.say(*[b"250-" + line for line in lines[:-1]], b"250 " + lines[-1])

    def _start_tls(self) -> None:
        tls = SSL.Connection(self.server.context, self._plain)
        tls.set_accept_state()
        tls.do_handshake()
        self._tls = tls
        if tls.get_protocol_version() >= SSL.TLS1_3_VERSION:
            exported = tls.export_keying_material(b"EXPORTER-Channel-Binding", 32, b"")
            self.binding = (b"tls-exporter", exported)
        else:
            self.binding = (b"tls-server-end-point", hashlib.sha256(self.server.made.der).digest())

    def _auth(self, line: bytes) -> None:
        words = line.split(b" ")
        name = words[1].decode().upper()
        self.exchanges.append(name)
        initial = words[2] if len(words) > 2 else None
        answer = self.server.answers.get(name) or self.server.answers.get("*")
        if answer is not None:
            self.say(answer(self) if callable(answer) else answer)
            return
        if name.startswith("SCRAM-SHA-256"):
            is_good = self._scram(initial, has_binding=name.endswith("PLUS"))
        elif name == "PLAIN":
            is_good = self.response(initial, b"").split(b"\0") == [b"", self.server.user, self.server.password]
        elif name == "LOGIN":
            is_good = [self.ask(b"User Name\0"), self.ask(b"Password:")] == [self.server.user, self.server.password]
        elif name == "CRAM-MD5":
            said = self.ask(b"<1896.697170952@auth.example>")
            digest = hmac.digest(self.server.password, b"<1896.697170952@auth.example>", "md5").hex().encode()
            is_good = said == self.server.user + b" " + digest
        else:
            said = self.response(initial, b"")
            is_good = said == b"user=%b\1auth=Bearer %b\1\1" % (self.server.user, self.server.token)
            if not is_good:
                self.ask(b'{"status":"401","schemes":"bearer"}')
        self.is_authenticated = is_good
        self.say(b"235 2.7.0 welcome" if is_good else b"535 5.7.8 wrong credentials")

    # ------------------------------------------------------------------ challenges

    def ask(self, challenge: bytes) -> bytes:
        """Send a challenge; the response, decoded."""
        self.say(b"334 " + base64.b64encode(challenge))
        return base64.b64decode(self.line())

    def response(self, initial: bytes | None, challenge: bytes) -> bytes:
        """The initial response, or the one to this challenge."""
        if initial is None:
            return self.ask(challenge)
        return b"" if initial == b"=" else base64.b64decode(initial)

    def _scram(self, initial: bytes | None, *, has_binding: bool) -> bool:
        """RFC 5802 3 and 5, as the server."""
        first = self.response(initial, b"")
        flag, _, bare = first.split(b",", 2)
        if has_binding is not flag.startswith(b"p="):
            return False
        if flag == b"y" and b"-PLUS" in (self.server.offers or b""):
            return False
        kind, data = self.binding
        if has_binding and flag != b"p=" + kind:
            return False
        fields = dict(part.split(b"=", 1) for part in bare.split(b","))
        if fields[b"n"] != self.server.user:
            return False
        salt = hashlib.sha256(b"salt of " + self.server.user).digest()[:16]
        nonce = fields[b"r"] + base64.b64encode(os.urandom(12))
        server_first = b"r=%b,s=%b,i=%d" % (nonce, base64.b64encode(salt), self.server.iterations)
        final = self.ask(server_first)
        without, _, proof = final.rpartition(b",p=")
        bound = base64.b64encode(flag + b",," + (data if has_binding else b""))
        salted = hashlib.pbkdf2_hmac("sha256", self.server.password, salt, self.server.iterations)
        message = b",".join((bare, server_first, without))
        stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
        mask = hmac.digest(stored, message, "sha256")
        key = bytes(one ^ other for one, other in zip(base64.b64decode(proof), mask, strict=True))
        is_good = hashlib.sha256(key).digest() == stored and without == b"c=%b,r=%b" % (bound, nonce)
        if self.server.forges:
            return self.ask(b"v=" + base64.b64encode(bytes(32))) == b""
        if not is_good:
            return False
        signature = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), message, "sha256")
        return self.ask(b"v=" + base64.b64encode(signature)) == b""
