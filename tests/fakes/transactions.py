"""An owner of the client engine that records: what was written, and the fate of every recipient."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from mailismus.mail.reply import Reply
from mailismus.smtp.client.engine import ClientEngine
from mailismus.smtp.client.lmtp_engine import LmtpEngine
from mailismus.smtp.client.pipelining import Pipelining
from mailismus.smtp.client.starttls import TlsUse
from mailismus.smtp.client.transaction import Transaction

PIPELINING = b"250-mx\r\n250 PIPELINING\r\n"
ACCEPTED = b"250 ok\r\n250 ok\r\n354 go\r\n"
"""Replies to MAIL, RCPT and DATA."""
ENVELOPE = b"MAIL FROM:<s@a.example>\r\nRCPT TO:<r@b.example>\r\nDATA\r\n"
BODY = b"Hello\r\n.\r\n"


class Letter(Transaction):
    """A transaction with a name and its content; `content` None: it comes in pieces."""

    def __init__(
        self,
        name: str,
        recipients: Sequence[bytes] = (b"r@b.example",),
        content: bytes | None = b"Hello\r\n",
        sender: bytes = b"s@a.example",
        eightbit: bool = False,
    ) -> None:
        super().__init__(sender, list(recipients), len(content or b""), eightbit)
        self.name = name
        self.content = content


class RecordingOwner:
    """Begins the letters one after another; `behind` says whether they may travel behind a final dot."""

    def __init__(
        self,
        letters: Iterable[Letter] = (),
        *,
        max_pipeline: int = 25,
        behind: bool = True,
        pipelining: Pipelining = Pipelining.INNOCENT,
        needs_helo: bool = False,
        use: TlsUse = TlsUse.NEVER,
        wants_auth: bool = False,
    ) -> None:
        self.waiting = deque(letters)
        self.behind = behind
        self.written = b""
        self.writes: list[bytes] = []
        self.fates: list[str] = []
        self.texts: list[bytes] = []
        self.streamed: list[Letter] = []
        self.client: ClientEngine[Letter] = ClientEngine(
            self, b"me.example", max_pipeline, pipelining, needs_helo, use, wants_auth
        )

    def take_written(self) -> bytes:
        """What was written since the last time."""
        written, self.written = self.written, b""
        return written

    def send(self, parts: Sequence[bytes]) -> None:
        self.written += b"".join(parts)
        self.writes.append(b"".join(parts))

    def start_auth(self) -> None:
        self.fates.append("start auth")

    def on_auth_reply(self, code: int, raw: bytes) -> None:
        self.fates.append(f"auth {code}")

    def on_ready(self) -> None:
        if self.waiting:
            self.client.begin(self.waiting.popleft())
        else:
            self.fates.append("idle")

    def next_transaction(self) -> Letter | None:
        return self.waiting.popleft() if self.behind and self.waiting else None

    def content_of(self, transaction: Letter) -> bytes | None:
        if transaction.content is None:
            self.streamed.append(transaction)
        return transaction.content

    def on_refused(self, transaction: Letter, position: int, reply: Reply) -> None:
        self.fates.append(f"{transaction.name}#{position} {reply.code}")
        self.texts.append(bytes(reply))

    def on_finished(self, transaction: Letter, reply: Reply) -> None:
        self.fates.append(f"{transaction.name} {reply.code}")
        self.texts.append(bytes(reply))

    def on_untried(self, transaction: Letter) -> None:
        self.fates.append(f"{transaction.name} untried")
        transaction.renew()  # it is begun elsewhere, at any time from now on

    def start_tls(self) -> None:
        self.fates.append("start TLS")

    def on_unusable(self, reply: Reply) -> None:
        self.fates.append(f"unusable {reply.code}")
        self.texts.append(bytes(reply))

    def on_end(self, why: bytes) -> None:
        self.fates.append("end")


class LmtpRecorder(RecordingOwner):
    """The same for the engine of LMTP."""

    def __init__(self, letters: Iterable[Letter] = (), *, max_pipeline: int = 25, behind: bool = True) -> None:
        super().__init__(letters, max_pipeline=max_pipeline, behind=behind)
        self.client = LmtpEngine(self, b"me.example", max_pipeline)

    def on_answered(self, transaction: Letter, position: int, reply: Reply) -> None:
        self.fates.append(f"{transaction.name}@{position} {reply.code}")
        self.texts.append(bytes(reply))


def letters(count: int, recipients: int = 1) -> list[Letter]:
    names = [b"r@b.example"] if recipients == 1 else [b"r%d@b.example" % i for i in range(recipients)]
    return [Letter("ABCDEFGH"[i], names) for i in range(count)]


def opened(
    *some: Letter,
    greeting: bytes = PIPELINING,
    behind: bool = True,
    max_pipeline: int = 25,
    pipelining: Pipelining = Pipelining.INNOCENT,
) -> RecordingOwner:
    owner = RecordingOwner(some, behind=behind, max_pipeline=max_pipeline, pipelining=pipelining)
    owner.client.receive(b"220 mx\r\n")
    owner.client.receive(greeting)
    return owner
