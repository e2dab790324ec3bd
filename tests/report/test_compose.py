"""Reports as readers see them: every field, and what must never be in one."""

from __future__ import annotations

import email.policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime

import pytest

from mailismus.mail.reply import Reply
from mailismus.queue.redirect import Redirect, with_redirects
from mailismus.report.compose import Origin, compose
from mailismus.report.excerpt import Excerpt, make_excerpt
from tests.report.samples import (
    ARRIVED,
    CONTENT,
    FAILED,
    HOST,
    NOW,
    ORIGIN,
    REPORT_ID,
    blocks_of,
    bounce,
    message,
    notice_of,
    parsed,
    parts_of,
    random,
    report_of,
    unstuffed,
)

POLICIES = [email.policy.SMTP, email.policy.default]
EIGHTBIT = CONTENT.replace(b"hello", b"gr\xc3\xbc\xc3\x9fe")
LATIN = CONTENT.replace(b"The first", b"Gr\xfc\xdfe, first")
LONG_LINE = CONTENT + b"x" * 999 + b"\r\n"


@pytest.mark.parametrize("policy", POLICIES, ids=["SMTP", "default"])
def test_every_header_field_is_right(policy: email.policy.EmailPolicy[EmailMessage]) -> None:
    report = report_of(message(bounce()))
    found = parsed(report, policy)
    assert found["From"].addresses[0].addr_spec == "postmaster@example.net"
    assert found["From"].addresses[0].display_name == "Mail Delivery System"
    assert found["To"].addresses[0].addr_spec == "bob@example.org"
    assert found["Subject"] == "Delivery Failure Report"
    assert found["Date"].datetime.timestamp() == NOW
    assert found["Auto-Submitted"] == "auto-replied"
    assert found["MIME-Version"] == "1.0"
    assert found["Message-ID"] == report.message_id.decode() == f"<{NOW}.0000000100000007@mx.example.net>"
    assert found["In-Reply-To"] == found["References"] == "<1@client.example.com>"
    assert found["Received"].startswith("by mx.example.net id 0000000100000007;")
    assert found["Content-Transfer-Encoding"] is None
    assert found.get_content_type() == "multipart/report"
    assert found.get_param("report-type") == "delivery-status"
    assert [found.get_all(name) and len(found.get_all(name, [])) for name in ("From", "To", "Date", "Message-ID")] == [1] * 4


@pytest.mark.parametrize("policy", POLICIES, ids=["SMTP", "default"])
def test_every_field_of_the_delivery_status_is_right(policy: email.policy.EmailPolicy[EmailMessage]) -> None:
    later = Reply(451, b"", b"try again later")
    failed = message(
        bounce(),
        bounce(3, b'"odd one"@far.example', later, b"192.0.2.7[192.0.2.7]:2525", attempts=9, at=FAILED + 60),
        bounce(4, b"x@[IPv6:2001:db8::1]", Reply(554, b"5.7.1", b"no"), b"2001:db8::2[2001:db8::2]:25"),
        bounce(7, b"joe@example.net", Reply(550, b"5.1.1", b"no such user here"), b"local"),
        bounce(8, b"nix@void.example", Reply(556, b"5.1.10", b"takes no mail"), b"none"),
        bounce(9, b"held@far.example", None, b"-"),
        of=10,
    )
    parts = parts_of(parsed(report_of(failed), policy))
    assert [part["Content-Description"] for part in parts] == ["Notification", "Delivery status", "Undelivered message"]
    of_message, *of_recipients = blocks_of(parts[1])
    assert list(of_message.items()) == [
        ("Reporting-MTA", "dns; mx.example.net"),
        ("X-Mailismus-Queue-ID", "0000000100000003"),
        ("Arrival-Date", "Sat, 21 Nov 2026 08:31:33 +0000"),
    ]
    assert parsedate_to_datetime(str(of_message["Arrival-Date"])).timestamp() == int(ARRIVED)
    first, later_on = "Sat, 21 Nov 2026 08:32:33 +0000", "Sat, 21 Nov 2026 08:33:33 +0000"
    expected: list[tuple[str, str, str | None, str | None, str, int]] = [
        ("nobody@far.example", "5.1.1", "mx.far.example", "550 5.1.1 no such mailbox", first, 1),
        ('"odd one"@far.example', "4.0.0", "[192.0.2.7]", "451 try again later", later_on, 3),
        ("x@[IPv6:2001:db8::1]", "5.7.1", "[IPv6:2001:db8::2]", "554 5.7.1 no", first, 4),
        ("joe@example.net", "5.1.1", None, "550 5.1.1 no such user here", first, 7),
        ("nix@void.example", "5.1.10", None, "556 5.1.10 takes no mail", first, 8),
        ("held@far.example", "5.0.0", None, None, first, 9),
    ]
    for block, (recipient, status, remote, diagnostic, at, number) in zip(of_recipients, expected, strict=True):
        fields = [("Final-Recipient", f"rfc822; {recipient}"), ("Action", "failed"), ("Status", status)]
        fields += [("Remote-MTA", f"dns; {remote}")] if remote else []
        fields += [("Diagnostic-Code", f"smtp; {diagnostic}")] if diagnostic else []
        fields += [("Last-Attempt-Date", at), ("Final-Log-ID", f"0000000100000003-{number}")]
        assert list(block.items()) == fields


def test_a_report_names_the_recipient_that_was_written_to_and_the_one_that_an_act_redirected_it_to() -> None:
    words = with_redirects(None, [Redirect(7, "jürgen@new.example")])
    report = report_of(message(bounce(recipient=b"joe@old.example", words=words), bounce(2)))
    _, first, second = blocks_of(parts_of(parsed(report))[1])
    assert list(first.items())[:2] == [
        ("Original-Recipient", "rfc822; joe@old.example"),
        ("Final-Recipient", "utf-8; j\\x{FC}rgen@new.example"),
    ]
    assert next(iter(second)) == "Final-Recipient"
    assert "<joe@old.example> redirected to <jürgen@new.example> " in notice_of(report)


def test_a_long_reply_is_folded_and_comes_back_whole() -> None:
    text = b"see https://support.example/" + b"a" * 300 + b" for " + b"many words " * 40
    block = blocks_of(parts_of(parsed(report_of(message(bounce(reply=Reply(550, b"5.7.1", text))))))[1])[1]
    assert "".join(str(block["Diagnostic-Code"]).split()) == "smtp;5505.7.1" + text.decode().replace(" ", "")


def test_fields_are_folded_at_blanks_and_lines_are_short() -> None:
    text = b"connect to mx.other.example[192.0.2.3]:25 failed: Connection refused, or not, and so on and on: and on"
    lines = unstuffed(report_of(message(bounce(reply=Reply(451, b"4.4.1", text))), None).content).split(b"\r\n")
    assert max(map(len, lines)) <= 76
    at = next(number for number, line in enumerate(lines) if line.startswith(b"Diagnostic-Code: smtp; 451 4.4.1 connect to"))
    assert lines[at + 1].startswith(b" ")


@pytest.mark.parametrize("policy", POLICIES, ids=["SMTP", "default"])
def test_a_message_that_fits_is_returned_whole_and_undistorted(policy: email.policy.EmailPolicy[EmailMessage]) -> None:
    report = report_of(message(bounce()))
    part = parts_of(parsed(report, policy))[2]
    assert part.get_content_type() == "message/rfc822"
    original = part.get_content()
    assert original["Subject"] == "hello"
    assert original.get_content().splitlines() == ["The first line.", ".a line that began with a dot", "The last line."]
    assert not report.is_eightbit
    assert b"\r\n..a line that began with a dot\r\n" in report.content
    assert CONTENT.replace(b"..a", b".a") in unstuffed(report.content)
    assert "The whole message is returned with this report." in notice_of(report)


def test_a_message_that_does_not_fit_is_cut_at_a_line_and_says_so() -> None:
    body = b"".join(b"line %03d\r\n" % number for number in range(500))
    content = CONTENT.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" + body
    report = report_of(message(bounce(), size=len(content)), content, 1000)
    part = parts_of(parsed(report))[2]
    assert part.get_content_type() == "text/rfc822-headers"
    assert part["Content-Description"] == "Undelivered message, its beginning"
    kept = part.get_payload(decode=True)
    assert isinstance(kept, bytes)
    kept = kept.removesuffix(b"\r\n") if not content.startswith(kept) else kept
    assert content.startswith(kept)
    assert 980 < len(kept) <= 1000
    assert kept.endswith(b"\r\n")
    assert f"Only the beginning of the message is returned with this report: {len(kept)} of its {len(content)} bytes." in (
        notice_of(report)
    )


def test_the_header_comes_whole_whatever_the_room() -> None:
    header = b"Received: x\r\n" * 2000 + b"Subject: at the end\r\nMessage-ID: <last@a.example>\r\n"
    content = header + b"\r\n" + b"body\r\n" * 1000
    report = report_of(message(bounce(), size=len(content)), content, 100)
    part = parts_of(parsed(report))[2]
    assert part.get_payload(decode=True) == header
    assert parsed(report)["References"] == "<last@a.example>"


def test_a_header_without_end_is_cut_too() -> None:
    content = b"X: y\r\n" * 50_000
    report = report_of(message(bounce(), size=len(content)), content[:70_000], 100)
    assert len(report.content) < 70_000
    part = parts_of(parsed(report))[2].get_payload(decode=True)
    assert isinstance(part, bytes)
    assert content.startswith(part)


def test_a_content_that_is_lost_is_said_to_be() -> None:
    report = report_of(message(bounce()), None)
    found = parsed(report)
    assert len(parts_of(found)) == 2
    assert found["References"] is None
    assert "can't be returned" in notice_of(report)


@pytest.mark.parametrize("content", [EIGHTBIT, LATIN])
def test_a_whole_message_of_eight_bits_is_returned_as_it_is(content: bytes) -> None:
    report = report_of(message(bounce(), size=len(content)), content)
    found = parsed(report)
    assert report.is_eightbit
    assert found["Content-Transfer-Encoding"] == "8bit"
    part = parts_of(found)[2]
    assert (part.get_content_type(), part["Content-Transfer-Encoding"]) == ("message/rfc822", "8bit")
    assert content in report.content


@pytest.mark.parametrize(("content", "charset"), [(EIGHTBIT, "utf-8"), (LATIN, "iso-8859-1")])
def test_a_cut_message_of_eight_bits_is_encoded(content: bytes, charset: str) -> None:
    content += b"more\r\n" * 100
    report = report_of(message(bounce(), size=len(content)), content, 420)
    assert report.content.isascii()
    assert not report.is_eightbit
    part = parts_of(parsed(report))[2]
    assert (part["Content-Transfer-Encoding"], part.get_content_charset()) == ("quoted-printable", charset)
    kept = part.get_payload(decode=True)
    assert isinstance(kept, bytes)
    assert content.replace(b"..a", b".a").startswith(kept)
    assert len(kept) > 400


@pytest.mark.parametrize(
    "content", [LONG_LINE, CONTENT + b"a\rb\nc\0\r\n", CONTENT + b" \r\n.\r\n \t \r\n" + b"=" * 999 + b"\r\n"]
)
def test_lines_that_mail_may_not_have_are_encoded_and_come_back(content: bytes) -> None:
    stored = content.replace(b"\r\n.\r\n", b"\r\n..\r\n")
    report = report_of(message(bounce(), size=len(stored)), stored)
    assert max(map(len, report.content.split(b"\r\n"))) <= 998
    part = parts_of(parsed(report))[2]
    assert part.get_content_type() == "text/rfc822-headers"
    assert part.get_payload(decode=True) == content.replace(b"..a", b".a")


@pytest.mark.parametrize(
    ("content", "is_mailable"),
    [
        (b"x" * 998 + b"\r\n" + b"y" * 998, True),
        (b"x" * 999 + b"\r\n", False),
        (b"\r\n" + b"y" * 999, False),
        (b"a\r\n\r\nb\r\n", True),
        (b"a\r\r\nb", False),
        (b"a\n\r\nb", False),
        (b"a\n\rb\r\n", False),
        (b"a\r", False),
        (b"a\0b\r\n", False),
        (b"", True),
    ],
)
def test_what_may_stand_in_a_message_as_it_is(content: bytes, is_mailable: bool) -> None:
    assert Excerpt(content, len(content), True).is_mailable is is_mailable


def test_the_boundary_never_occurs_inside() -> None:
    tries: list[bytes] = []

    def unlucky(size: int) -> bytes:
        tries.append(bytes([len(tries)]) * size)
        return tries[-1]

    content = CONTENT + b"--=_" + (b"00" * 15) + b"\r\n--=_" + (b"01" * 15) + b"--\r\n"
    report = compose(
        ORIGIN, REPORT_ID, message(bounce()), make_excerpt(content, len(content), len(content), 4000), NOW, unlucky
    )
    assert len(tries) == 3
    assert parsed(report).get_boundary() == "=_" + "02" * 15
    assert len(parts_of(parsed(report))) == 3


def test_a_subject_in_any_language_is_encoded() -> None:
    origin = Origin(b"mx.example.net", b"postmaster@example.net", "Zustellung gescheitert: ungültige Adresse " + "ä" * 100)
    report = compose(origin, REPORT_ID, message(bounce()), None, NOW, random)
    assert report.content.isascii()
    assert parsed(report)["Subject"] == origin.subject


@pytest.mark.parametrize(
    "field",
    [
        b"<a b@c.example>",
        b"<a@c.example>\r\n\tBcc: x@y.example",
        b"<a@c.example> (x)",
        b"<\xff@c.example>",
        b"a@c.example",
        b"<" + b"a" * 300 + b"@c>",
        b"<a@c.example><b@c.example>",
    ],
)
def test_a_message_id_that_is_none_is_not_repeated(field: bytes) -> None:
    found = parsed(report_of(message(bounce()), b"Message-ID: " + field + b"\r\n\r\nx\r\n"))
    assert found["References"] is None
    assert found["In-Reply-To"] is None
    assert found["Bcc"] is None


def test_a_message_id_that_is_folded_is_repeated_in_one_line() -> None:
    found = parsed(report_of(message(bounce()), b"message-id:\r\n <a.1@[192.0.2.1]>\r\n\r\nx\r\n"))
    assert found["References"] == "<a.1@[192.0.2.1]>"


def test_nobody_else_is_named() -> None:
    """Neither a recipient that did not fail nor one of another message."""
    report = report_of(message(bounce(2), of=3), None)
    found = unstuffed(report.content)
    assert found.count(b"@") == found.count(b"nobody@far.example") + found.count(b"bob@example.org") + found.count(
        b"postmaster@example.net"
    ) + found.count(b"@mx.example.net")


def test_a_reply_can_forge_nothing() -> None:
    text = b"no\r\nFinal-Recipient: rfc822; x@y.example\r\n\r\n--=_00--\r\n.\r\nQUIT\0\x1b[2J \xe2\x80\xae"
    report = report_of(message(bounce(reply=Reply(550, b"5.1.1\r\nX: y", text), host=HOST)))
    assert len(blocks_of(parts_of(parsed(report))[1])) == 2
    assert report.content.isascii()
    assert b"\0" not in report.content
    assert b"\x1b" not in report.content
    assert b"\r\n.\r\n" not in report.content
    assert b"\r\nFinal-Recipient: rfc822; x@y" not in report.content
    assert "\\x0d\\x0aFinal-Recipient" in notice_of(report).replace(" ", "")


def test_an_address_that_is_none_is_escaped_and_cut() -> None:
    report = report_of(message(bounce(recipient=b"\xff" * 254), sender=b"\xff\r\n" * 84))
    parsed(report)
    assert report.content.isascii()
    assert max(map(len, report.content.split(b"\r\n"))) <= 998


def test_a_thousand_recipients_make_a_report_of_bounded_size() -> None:
    reply = Reply(550, b"5.1.1", b"x" * 1000)
    entries = [bounce(number, b"r%d@far.example" % number, reply) for number in range(1, 1001)]
    report = report_of(message(*entries))
    assert len(blocks_of(parts_of(parsed(report))[1])) == 1001
    assert len(report.content) < 1_500_000
    assert notice_of(report).count("no mailbox of that name") == 1


def test_addresses_in_utf_8_are_shown_to_people_and_written_in_ascii_for_programs() -> None:
    report = report_of(message(bounce(recipient='"jö=rg+x"@bücher.example'.encode())))
    assert report.content.isascii()
    assert not report.is_eightbit
    assert report.words is None
    assert b'\r\nFinal-Recipient: utf-8; "j\\x{F6}\\x{3D}rg\\x{2B}x"@b\\x{FC}cher.example\r\n' in report.content
    notice = next(part for part in parsed(report).walk() if part.get_content_type() == "text/plain")
    assert notice.get_content_charset() == "utf-8"
    assert '<"jö=rg+x"@bücher.example>' in notice.get_content()


@pytest.mark.parametrize(
    ("sender", "recipient", "words"),
    [
        ("joe@bücher.example", b"joe@xn--bcher-kva.example", None),
        ("jörg@bücher.example", "jörg@bücher.example".encode(), b"UTF8=HEADER"),
    ],
)
def test_a_report_needs_smtputf8_only_if_its_recipient_does(sender: str, recipient: bytes, words: bytes | None) -> None:
    report = report_of(message(bounce(), sender=sender.encode()))
    assert (report.recipient, report.words, report.is_eightbit) == (recipient, words, words is not None)
    assert b"\r\nTo: <%b>\r\n" % recipient in report.content


@pytest.mark.parametrize(("limit", "kind"), [(4000, "message/global"), (10, "message/global-headers")])
def test_a_message_with_a_header_in_utf_8_is_returned_as_one(limit: int, kind: str) -> None:
    failed = message(bounce())
    failed.words = b"UTF8=HEADER"
    content = "Subject: Grüße\r\n\r\nA line\r\n".encode()
    text = report_of(failed, content, limit).content
    assert f"Content-Type: {kind}\r\n".encode() in text
