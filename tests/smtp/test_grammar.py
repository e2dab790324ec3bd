"""Command lines, taken apart or refused."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.address import domain_of, is_domain
from mailismus.smtp import replies
from mailismus.smtp.grammar import parse_hello, parse_mail, parse_rcpt, trace_name


@pytest.mark.parametrize(
    ("line", "result"),
    [
        (b"MAIL FROM:<a@b.example>", (b"a@b.example", 0, False, False)),
        (b"mail from:<A@B.example>", (b"A@B.example", 0, False, False)),
        (b"MAIL FROM: <a@b.example>", (b"a@b.example", 0, False, False)),
        (b"MAIL FROM:<a@b.example>  ", (b"a@b.example", 0, False, False)),
        (b"MAIL FROM:<>", (b"", 0, False, False)),
        (b"MAIL FROM:<> SIZE=10", (b"", 10, False, False)),
        (b"MAIL FROM:<a@b.example> size=10 body=8bitmime", (b"a@b.example", 10, True, False)),
        (b"MAIL FROM:<a@b.example> BODY=7BIT", (b"a@b.example", 0, False, False)),
        (b'MAIL FROM:<"a > b"@c.example> SIZE=1', (b'"a > b"@c.example', 1, False, False)),
        (b"MAIL FROM:<@r.example:a@b.example>", (b"a@b.example", 0, False, False)),
        (b"MAIL FROM:<a@[192.0.2.1]>", (b"a@[192.0.2.1]", 0, False, False)),
        (b"MAIL FROM:<postmaster>", replies.BAD_SENDER),
        (b"MAIL FROM:a@b.example", replies.BAD_SENDER),
        (b"MAIL FROM:<a@b.example", replies.BAD_SENDER),
        (b"MAIL FROM:<a@b.example>x", replies.BAD_SENDER),
        (b"MAIL FROM:<a@b.example.>", replies.BAD_SENDER),
        (b"MAIL FROM:<\xc3\xa9@b.example>", replies.UTF8_UNDECLARED),
        (b"MAIL FROM:<<a@b.example>>", replies.BAD_SENDER),
        (b"MAIL FROM:<" + b"l" * 65 + b"@b.example>", replies.BAD_SENDER),
        (b"MAIL FROM:", replies.BAD_SENDER),
        (b"MAIL FROM", replies.BAD_ARGUMENT),
        (b"MAIL", replies.BAD_ARGUMENT),
        (b"MAIL TO:<a@b.example>", replies.BAD_ARGUMENT),
        (b"MAIL FROM:<a@b.example>\nRCPT TO:<c@d.example>", replies.BAD_BYTES),
        (b"MAIL FROM:<a@b.example>\r", replies.BAD_BYTES),
        (b"MAIL FROM:<a\0@b.example>", replies.BAD_BYTES),
        (b"MAIL FROM:<a@b.example> SIZE=1\0", replies.BAD_BYTES),
        (b"MAIL FROM:<a@b.example> SIZE=", replies.BAD_PARAMETER),
        (b"MAIL FROM:<a@b.example> SIZE", replies.BAD_PARAMETER),
        (b"MAIL FROM:<a@b.example> SIZE=-1", replies.BAD_PARAMETER),
        (b"MAIL FROM:<a@b.example> SIZE=" + b"9" * 21, replies.BAD_PARAMETER),
        (b"MAIL FROM:<a@b.example> SIZE=1 SIZE=2", replies.BAD_PARAMETER),
        (b"MAIL FROM:<a@b.example> BODY=BINARYMIME", replies.BAD_PARAMETER),
        (b"MAIL FROM:<a@b.example> AUTH=<>", replies.UNKNOWN_PARAMETER),
        (b"MAIL FROM:<a@b.example> SMTPUTF8", (b"a@b.example", 0, False, True)),
        (b"MAIL FROM:<a@b.example> size=1 smtputf8 body=8bitmime", (b"a@b.example", 1, True, True)),
        (b"MAIL FROM:<a@b.example> SMTPUTF8=Y", replies.BAD_PARAMETER),
        (b"MAIL FROM:<a@b.example> SMTPUTF8 SMTPUTF8", replies.BAD_PARAMETER),
        ("MAIL FROM:<jörg@bücher.example> SMTPUTF8".encode(), ("jörg@bücher.example".encode(), 0, False, True)),
        ("MAIL FROM: <a@bücher.example> SMTPUTF8".encode(), ("a@bücher.example".encode(), 0, False, True)),
        ('MAIL FROM:<"j ö"@b.example> SMTPUTF8'.encode(), ('"j ö"@b.example'.encode(), 0, False, True)),
        ("MAIL FROM:<jörg@b.example>".encode(), replies.UTF8_UNDECLARED),
        ("MAIL FROM:<jörg@b.example> BODY=8BITMIME".encode(), replies.UTF8_UNDECLARED),
        ("MAIL FROM:<jörg@b.example> SMTPUTF8 X=ö".encode(), replies.BAD_SENDER),
        ("MAIL FROM:<jörg@b.example> X".encode(), replies.UNKNOWN_PARAMETER),
        (b"MAIL FROM:<j\xf6rg@b.example> SMTPUTF8", replies.BAD_SENDER),
        ("MAIL FROM:<j\u202eg@b.example> SMTPUTF8".encode(), replies.BAD_SENDER),
        ("MAIL FROM:<j\x85g@b.example> SMTPUTF8".encode(), replies.BAD_SENDER),
        ("MAIL FROM:<jö g@b.example> SMTPUTF8".encode(), replies.BAD_SENDER),
        ("MAIL FROM:<jö@-ü.example> SMTPUTF8".encode(), replies.BAD_SENDER),
        ("MAIL FROM:<jö@b..example> SMTPUTF8".encode(), replies.BAD_SENDER),
        ("MAIL FROM:<jö> SMTPUTF8".encode(), replies.BAD_SENDER),
        ("MAIL FROM:<jö\n@b.example> SMTPUTF8".encode(), replies.BAD_BYTES),
        (b"MAIL FROM:<%s@b.example> SMTPUTF8" % ("ö" * 33).encode(), replies.BAD_SENDER),
        (b"MAIL FROM:<a@b.example> RET=HDRS", replies.UNKNOWN_PARAMETER),
    ],
)
def test_mail(line: bytes, result: object) -> None:
    assert parse_mail(line) == result


@pytest.mark.parametrize(
    ("line", "recipient", "refusal"),
    [
        (b"RCPT TO:<a@b.example>", b"a@b.example", b""),
        (b"rcpt to: <A@B.example> ", b"A@B.example", b""),
        (b"RCPT TO:<postmaster>", b"postmaster", b""),
        (b"RCPT TO:<PostMaster>", b"PostMaster", b""),
        (b"RCPT TO:<@r.example,@s.example:a@b.example>", b"a@b.example", b""),
        (b'RCPT TO:<"a b"@c.example>', b'"a b"@c.example', b""),
        ("RCPT TO:<jörg@bücher.example>".encode(), "jörg@bücher.example".encode(), replies.UTF8_UNDECLARED),
        ("RCPT TO:<jörg@bücher.example> X".encode(), b"", replies.BAD_RECIPIENT),
        (b"RCPT TO:<j\xf6rg@b.example>", b"", replies.BAD_RECIPIENT),
        ("RCPT TO:<jörg>".encode(), b"", replies.BAD_RECIPIENT),
        (b"RCPT TO:<joe>", b"", replies.BAD_RECIPIENT),
        (b"RCPT TO:<>", b"", replies.BAD_RECIPIENT),
        (b"RCPT TO:<@b.example>", b"", replies.BAD_RECIPIENT),
        (b"RCPT TO:<a@b.example.>", b"", replies.BAD_RECIPIENT),
        (b"RCPT TO:<a@b@c.example>", b"", replies.BAD_RECIPIENT),
        (b'RCPT TO:<"a\x01"@b.example>', b"", replies.BAD_RECIPIENT),
        (b'RCPT TO:<"a\\\x01"@b.example>', b"", replies.BAD_RECIPIENT),
        (b'RCPT TO:<"a\\\n"@b.example>', b"", replies.BAD_BYTES),
        (b"RCPT", b"", replies.BAD_ARGUMENT),
        (b"RCPT FROM:<a@b.example>", b"", replies.BAD_ARGUMENT),
        (b"RCPT TO:<a@b.example> NOTIFY=NEVER", b"", replies.UNKNOWN_PARAMETER),
    ],
)
def test_rcpt(line: bytes, recipient: bytes, refusal: bytes) -> None:
    assert parse_rcpt(line) == (recipient, refusal)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b"EHLO client.example", b"client.example"),
        (b"helo  [192.0.2.1] ", b"[192.0.2.1]"),
        (b"EHLO MY_PC", b"MY_PC"),
        (b"EHLO", None),
        (b"EHLO ", None),
        (b"EHLO a b", None),
        (b"EHLO a\nb", None),
        (b"EHLO \xff", None),
        (b"EHLO " + b"a" * 256, None),
    ],
)
def test_hello(line: bytes, name: bytes | None) -> None:
    assert parse_hello(line) == name


@pytest.mark.parametrize("name", [b"MY_PC", b"a(b", b"[1.2.3]", b"x\\", b"a..b", b"<a>"])
def test_a_name_that_can_be_none_is_unknown_in_a_trace_field(name: bytes) -> None:
    assert trace_name(name) == b"unknown"


def test_a_domain_or_literal_stands_in_a_trace_field_as_given() -> None:
    assert trace_name(b"Client.example") == b"Client.example"
    assert trace_name(b"[IPv6:2001:db8::1]") == b"[IPv6:2001:db8::1]"


@given(st.binary(max_size=80), st.sampled_from([b"", b" SIZE=1", b"> SIZE=1", b">"]))
def test_what_is_taken_apart_holds_printable_bytes_alone(path: bytes, tail: bytes) -> None:
    mail = parse_mail(b"MAIL FROM:<" + path + tail)
    if not isinstance(mail, bytes):
        assert all(32 <= byte < 127 for byte in mail[0])
    recipient, refusal = parse_rcpt(b"RCPT TO:<" + path + tail)
    assert bool(recipient) is not bool(refusal) or refusal is replies.UTF8_UNDECLARED
    assert recipient.isascii() is (refusal is not replies.UTF8_UNDECLARED)
    assert recipient.decode().isprintable()


@given(st.text(max_size=20), st.text(max_size=20))
def test_addresses_in_utf_8_are_visible_and_have_a_domain(local_part: str, domain: str) -> None:
    address = f"{local_part}@{domain}.example".encode("utf-8", "surrogatepass")
    mail = parse_mail(b"MAIL FROM:<" + address + b"> SMTPUTF8")
    if not isinstance(mail, bytes):
        text = mail[0].decode()
        assert text.replace("\u200c", "").replace("\u200d", "").isprintable()
        assert is_domain(domain_of(mail[0])) or domain_of(mail[0])[:1] == b"["


@pytest.mark.parametrize(
    "line",
    [
        b"MAIL FROM:<> x" + b" " * 2030 + b"\x80",
        b"MAIL FROM:<>" + b" " * 2030 + b"\x80",
        b"RCPT TO:<a@b.example>" + b" x" * 1000 + b"\x80",
        b"RCPT TO:<" + b'"' * 2039,
        b'RCPT TO:<"' + b"\\a" * 1019,
        b"MAIL FROM:<@a" + b",@a" * 678,
    ],
)
def test_a_line_made_to_be_slow_is_refused_as_fast_as_any(line: bytes) -> None:
    began = time.process_time()
    for _ in range(20):
        assert isinstance(parse_mail(line), bytes)
        assert parse_rcpt(line)[1]
    assert time.process_time() - began < 0.2  # a second and more, where trailing blanks are tried again and again
