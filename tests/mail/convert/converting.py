"""Converting a message in one go, for tests."""

from __future__ import annotations

from collections.abc import Iterator

from mailismus.mail.convert.apply import Converter, Proof
from mailismus.mail.convert.plan import Analysis, Plan
from mailismus.mail.convert.refusal import NotConvertible
from tests.fakes.stuffing import stuff, unstuff


def lines(text: str, encoding: str = "utf-8") -> bytes:
    """A message."""
    return text.replace("\n", "\r\n").encode(encoding)


def pieces_of(content: bytes, size: int) -> Iterator[bytes]:
    """The content, cut into pieces of this size."""
    return (content[at : at + size] for at in range(0, len(content), size))


def plan_of(message: bytes, size: int = 65536) -> Plan | NotConvertible:
    """The plan of a message without dot-stuffing."""
    analysis = Analysis()
    for piece in pieces_of(stuff(message), size):
        if not analysis.feed(piece):
            break
    return analysis.end()


def converted(message: bytes, size: int = 65536) -> bytes | NotConvertible:
    """The message as 7-bit content, proved; without dot-stuffing, as it is given."""
    plan = plan_of(message, size)
    if isinstance(plan, NotConvertible):
        return plan
    result = by_plan(message, plan, size)
    proof = Proof(plan)
    for piece in pieces_of(result, size):
        proof.feed(piece)
    assert proof.end()
    plain = unstuff(result)
    assert proof.size_bytes == len(plain)
    return plain


def by_plan(message: bytes, plan: Plan, size: int = 65536) -> bytes:
    """The message, converted by this plan, as on the wire."""
    conversion = Converter(plan)
    return b"".join([conversion.feed(piece) for piece in pieces_of(stuff(message), size)]) + conversion.end()


def why_not(message: bytes) -> tuple[bytes, bytes]:
    """Why a message can't be converted: status and words."""
    refusal = plan_of(message)
    assert isinstance(refusal, NotConvertible)
    return refusal.status, refusal.why


def is_proved(plan: Plan, result: bytes) -> bool:
    """Whether this result, as on the wire, is the message of the plan."""
    proof = Proof(plan)
    proof.feed(result)
    return proof.end()
