"""What the generator and the recording sink write down: one line each, blanks between, parsed strictly (pure).

Times are seconds of the machine's monotonic clock, which all processes share. A last line without its end is left out,
since its writer may still be writing.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from benchmarks.content import number_and_index


@attrs.frozen
class Acknowledged:
    """The server answered a message's final dot with 250."""

    at_s: float
    number: int
    recipients: int
    size_bytes: int
    digest: str

    def line(self) -> bytes:
        """`A AT NUMBER RECIPIENTS SIZE DIGEST`."""
        return b"A %.6f %d %d %d %s\n" % (self.at_s, self.number, self.recipients, self.size_bytes, self.digest.encode())


@attrs.frozen
class Unanswered:
    """Another reply came; or none to the final dot (`reply` empty), so that nobody knows whether it was taken."""

    at_s: float
    number: int
    size_bytes: int
    digest: str
    reply: str

    def line(self) -> bytes:
        """`U AT NUMBER SIZE DIGEST REPLY`; the reply has no line end; digest `-` when the content was not sent."""
        reply = self.reply.encode("ascii", "replace")
        return b"U %.6f %d %d %s %s\n" % (self.at_s, self.number, self.size_bytes, self.digest.encode(), reply)


@attrs.frozen
class Delivery:
    """The sink answered a message's final dot with 250."""

    at_s: float
    sender: bytes
    recipients: tuple[bytes, ...]
    size_bytes: int
    digest: str

    def line(self) -> bytes:
        """`AT SIZE DIGEST SENDER RECIPIENT,RECIPIENT..`, `<>` for the null sender."""
        head = b"%.6f %d %s %s " % (self.at_s, self.size_bytes, self.digest.encode(), self.sender or b"<>")
        return head + b",".join(self.recipients) + b"\n"

    def entries(self) -> Iterator[tuple[int, int]]:
        """(number, index) of each recipient. Raises: ValueError for an address not of the trial."""
        for address in self.recipients:
            yield number_and_index(address)


def whole_lines(data: bytes) -> list[bytes]:
    """The complete lines."""
    return data.split(b"\n")[:-1]


def parse_sent(data: bytes) -> tuple[list[Acknowledged], list[Unanswered]]:
    """The generator's record."""
    acknowledged, unanswered = [], []
    for line in whole_lines(data):
        kind, at, number, rest = line.split(b" ", 3)
        if kind == b"A":
            recipients, size, digest = rest.split(b" ")
            acknowledged.append(Acknowledged(float(at), int(number), int(recipients), int(size), digest.decode()))
        else:
            size, digest, reply = rest.split(b" ", 2)
            unanswered.append(Unanswered(float(at), int(number), int(size), digest.decode(), reply.decode()))
    return acknowledged, unanswered


def parse_deliveries(data: bytes) -> list[Delivery]:
    """The sink's record."""
    found = []
    for line in whole_lines(data):
        at, size, digest, sender, recipients = line.split(b" ", 4)
        paths = tuple(recipients.split(b",")) if recipients else ()
        found.append(Delivery(float(at), b"" if sender == b"<>" else sender, paths, int(size), digest.decode()))
    return found
