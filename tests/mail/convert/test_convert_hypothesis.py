"""Whatever a message holds: its conversion is refused, or Python's `email` finds the same parts in the result."""

from __future__ import annotations

import email
import email.policy
from email.message import Message

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailismus.mail.convert.plan import Plan
from mailismus.mail.convert.refusal import NotConvertible
from tests.mail.convert.converting import by_plan, converted, plan_of

BITS = st.sampled_from(
    [
        *(
            b"\r\n",
            b"\r\n",
            b"--",
            b"--b0",
            b"\r\n--b1",
            b"\r\n--b1--",
            b"\r\n--b0--\r\n",
            b"-",
            b"=",
            b"=\r\n",
            b" ",
            b"\t",
            b" \r\n",
        ),
        *(
            b".",
            b"\r\n.",
            b"\r\n.\r\n",
            b"\xc3\xbc",
            b"\xff",
            b"From ",
            b"x" * 76,
            b"-" * 80,
            b"y" * 3419,
            b"y" * 3420,
            b"z" * 1000,
        ),
        *(b"\r\n\r\n", b"Content-Type: text/plain\r\n\r\n", b"plain words"),
    ]
)
BODIES = st.lists(BITS, max_size=25).map(b"".join)
ENCODINGS = st.sampled_from([b"", b"", b"7bit", b"8bit", b"BINARY", b"quoted-printable", b"base64"])
TYPES = st.sampled_from([b"", b"text/plain", b"text/html; charset=x", b"application/x", b"message/delivery-status"])


def header_of(kind: bytes, encoding: bytes) -> bytes:
    return (b"Content-Type: %b\r\n" % kind if kind else b"") + (
        b"Content-Transfer-Encoding: %b\r\n" % encoding if encoding else b""
    )


@st.composite
def entities(draw: st.DrawFn, depth: int = 0) -> bytes:
    shape = draw(st.sampled_from(["leaf", "leaf", "multipart", "multipart", "message", "signed"])) if depth < 4 else "leaf"
    if shape == "leaf":
        return header_of(draw(TYPES), draw(ENCODINGS)) + b"\r\n" + draw(BODIES)
    encoding = draw(st.sampled_from([b"", b"7bit", b"8bit", b"8bit"]))
    if shape == "message":
        return header_of(b"message/rfc822", encoding) + b"\r\nSubject: inner\r\n" + draw(entities(depth + 1))
    kind = b"signed" if shape == "signed" else draw(st.sampled_from([b"mixed", b"digest", b"alternative"]))
    boundary = b"b%d" % depth
    parts = draw(st.lists(entities(depth + 1), min_size=1, max_size=3))
    end = draw(st.sampled_from([b"--\r\n", b"--", b"-- \r\nepilogue\r\n"]))
    return b"".join(
        [
            header_of(b'multipart/%b; boundary="%b"' % (kind, boundary), encoding),
            b"\r\npreamble\r\n",
            *[b"--%b\r\n%b\r\n" % (boundary, part) for part in parts],
            b"--" + boundary + end,
        ]
    )


def parts_of(message: Message) -> list[tuple[str, list[tuple[str, str]], bytes]]:
    found = []
    for part in message.walk():
        fields = [(name, value) for name, value in part.items() if name.lower() not in ("content-transfer-encoding",)]
        body = part.get_payload(decode=True)
        found.append((part.get_content_type(), fields, body if isinstance(body, bytes) else b""))
    return found


def parse(message: bytes) -> Message:
    return email.message_from_bytes(message, policy=email.policy.compat32)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(entities(), st.integers(1, 60))
def test_the_parts_are_the_same(entity: bytes, size: int) -> None:
    message = b"MIME-Version: 1.0\r\nSubject: a\r\n" + entity
    if not message.endswith(b"\r\n"):
        message += b"\r\n"
    result = converted(message)
    plan = plan_of(message, size)
    if isinstance(result, NotConvertible):
        assert isinstance(plan, NotConvertible)
        return
    assert isinstance(plan, Plan)
    assert by_plan(message, plan, size) == by_plan(message, plan)
    assert result.isascii()
    ours, theirs = parts_of(parse(message)), parts_of(parse(result))
    assert len(ours) == len(theirs)
    for (kind, fields, body), (new_kind, new_fields, new_body) in zip(ours, theirs, strict=True):
        assert kind == new_kind
        assert fields == [field for field in new_fields if field in fields]
        assert {name for name, _ in new_fields} - {name for name, _ in fields} <= {"MIME-Version", "Content-Type"}
        assert body.removesuffix(b"\r\n") == new_body.removesuffix(b"\r\n")


HOSTILE = st.lists(
    BITS
    | st.binary(max_size=30)
    | st.sampled_from(
        [
            *(b"\r", b"\n", b"\0", b"\r\n--b0\r\n", b"Content-Transfer-Encoding: 8bit\r\n", b"MIME-Version: 1.0\r\n"),
            *(b"Content-Type: multipart/mixed; boundary=b0\r\n\r\n", b"Content-Type: message/rfc822\r\n\r\n"),
            *(
                b"Content-Type: multipart/digest; boundary*0=b; boundary*1=1\r\n",
                b"Content-Type: ;;=\r\n",
                b":",
                b"X: y\r\n",
            ),
            *(b"Content-Type: multipart/mixed; boundary*=utf-8''%00%ff\r\n", b"Content-Type: text/plain; charset*=x'y\r\n"),
        ]
    ),
    max_size=60,
).map(b"".join)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(HOSTILE, st.integers(1, 200))
def test_hostile_content_is_refused_or_converted_the_same_in_any_pieces(content: bytes, size: int) -> None:
    whole, cut = plan_of(content), plan_of(content, size)
    if isinstance(whole, NotConvertible):
        assert isinstance(cut, NotConvertible)
        assert whole.status.startswith(b"5.6.")
    else:
        assert whole == cut
        assert by_plan(content, whole) == by_plan(content, whole, size)
