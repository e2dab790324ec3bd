"""What the generator and the recording sink write down: one line each, blanks between, parsed strictly (pure).

Times are seconds of the machine's monotonic clock, which all processes share. A last line without its end is left out,
since its writer may still be writing.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from benchmarks.results.content import number_and_index


@attrs.frozen
class Acknowledged:
    """The server answered a message's final dot with 250."""

    at_s: float
    number: int
    recipients: int
    size_bytes: int
    digest: str
    began_at_s: float = 0.0
    """When its MAIL was sent."""

    def line(self) -> bytes:
        """`A AT NUMBER RECIPIENTS SIZE DIGEST BEGAN`."""
        head = b"A %.6f %d %d %d " % (self.at_s, self.number, self.recipients, self.size_bytes)
        return head + b"%s %.6f\n" % (self.digest.encode(), self.began_at_s)


@attrs.frozen
class Unanswered:
    """Another reply came; or none to the final dot (`reply` empty), so that nobody knows whether it was taken."""

    at_s: float
    number: int
    recipients: int
    size_bytes: int
    digest: str
    reply: str

    def line(self) -> bytes:
        """`U AT NUMBER RECIPIENTS SIZE DIGEST REPLY`; no line end in it; digest `-` when the content was not sent."""
        reply = self.reply.encode("ascii", "replace")
        head = b"U %.6f %d %d %d " % (self.at_s, self.number, self.recipients, self.size_bytes)
        return head + b"%s %s\n" % (self.digest.encode(), reply)


@attrs.frozen
class Delivery:
    """The sink took a message: it answered the final dot with 250, or closed the connection in place of that."""

    at_s: float
    sender: bytes
    recipients: tuple[bytes, ...]
    size_bytes: int
    digest: str
    is_answered: bool = True

    def line(self) -> bytes:
        """`D|X AT SIZE DIGEST SENDER RECIPIENT,RECIPIENT..`: X, not answered; `<>` for the null sender."""
        kind = b"D" if self.is_answered else b"X"
        head = b"%s %.6f %d %s %s " % (kind, self.at_s, self.size_bytes, self.digest.encode(), self.sender or b"<>")
        return head + b",".join(self.recipients) + b"\n"

    def entries(self) -> Iterator[tuple[int, int]]:
        """(number, index) of each recipient. Raises: ValueError for an address not of the trial."""
        for address in self.recipients:
            yield number_and_index(address)


@attrs.frozen
class Broken:
    """The sink's peer was gone in the middle of a transaction: between MAIL and the reply to the final dot."""

    at_s: float
    recipients: int
    """Accepted in it."""

    def line(self) -> bytes:
        """`B AT RECIPIENTS`."""
        return b"B %.6f %d\n" % (self.at_s, self.recipients)


def whole_lines(data: bytes) -> list[bytes]:
    """The complete lines."""
    return data.split(b"\n")[:-1]


def parse_sent(data: bytes) -> tuple[list[Acknowledged], list[Unanswered]]:
    """The generator's record."""
    acknowledged, unanswered = [], []
    for line in whole_lines(data):
        kind, at, number, recipients, size, digest, rest = line.split(b" ", 6)
        head = float(at), int(number), int(recipients), int(size), digest.decode()
        if kind == b"A":
            acknowledged.append(Acknowledged(*head, float(rest)))
        else:
            unanswered.append(Unanswered(*head, rest.decode()))
    return acknowledged, unanswered


def parse_broken(data: bytes) -> list[Broken]:
    """What the sink's record says of transactions that were broken off."""
    lines = [line.split(b" ") for line in whole_lines(data) if line.startswith(b"B ")]
    return [Broken(float(at), int(recipients)) for _, at, recipients in lines]


def parse_deliveries(data: bytes) -> list[Delivery]:
    """The sink's record of what it took."""
    found = []
    for line in whole_lines(data):
        if line.startswith(b"B "):
            continue
        kind, at, size, digest, sender, recipients = line.split(b" ", 5)
        paths, path = tuple(recipients.split(b",")) if recipients else (), b"" if sender == b"<>" else sender
        found.append(Delivery(float(at), path, paths, int(size), digest.decode(), kind == b"D"))
    return found
