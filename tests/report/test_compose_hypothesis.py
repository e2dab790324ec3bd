"""Whatever a remote host, a sender or a message holds: the report is a report, and nothing breaks out of its place."""

from __future__ import annotations

import email
import email.policy
import quopri
from email.message import EmailMessage

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailismus.mail.reply import Reply
from mailismus.queue.interface import Entry
from mailismus.report.compose import compose
from mailismus.report.excerpt import make_excerpt, quote, stuff
from tests.report.samples import NOW, ORIGIN, REPORT_ID, blocks_of, bounce, message, parts_of, unstuffed

HOSTILE = st.sampled_from(
    [
        *(b"\r\n", b"\r", b"\n", b"\0", b".", b"\r\n.\r\n", b"--", b"--=_", b"=", b": ", b" ", b"\t", b"<>", b"@"),
        *(b"\x1b[2J", b"\xff", b"\xc3\xa9", b"Subject: x\r\n", b"\r\n\r\n", b"x" * 1200),
        b"Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n",
    ]
)
CONTENTS = st.lists(HOSTILE | st.binary(max_size=40), max_size=60).map(b"".join)
ODD = [b"a@b.example", b'"x y"; z"@d.example', b"a" * 64 + b"@" + b"d" * 60 + b".example"]
ADDRESSES = st.sampled_from(ODD) | st.binary(max_size=254)
STATUSES = st.sampled_from([b"", b"5.1.1", b"4.4.1", b"5.7.1"]) | st.binary(max_size=30)
REPLIES = st.none() | st.builds(Reply, st.integers(200, 599), STATUSES, CONTENTS)
HOSTS = st.sampled_from([b"mx.a.example[192.0.2.1]:25", b"local", b"none", b"-", b""]) | st.binary(max_size=60)


@st.composite
def bounces(draw: st.DrawFn) -> list[Entry]:
    return [
        bounce(number, draw(ADDRESSES), draw(REPLIES), draw(HOSTS), attempts=draw(st.integers(0, 99)))
        for number in range(1, draw(st.integers(1, 4)) + 1)
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(bounces(), ADDRESSES, st.none() | CONTENTS, st.integers(0, 3000), st.binary(min_size=1, max_size=1))
def test_a_report_always_is_one(entries: list[Entry], sender: bytes, content: bytes | None, limit: int, seed: bytes) -> None:
    seeds = iter(range(1, 1000))
    failed = message(*entries, sender=sender, size=len(content or b""))
    excerpt = None if content is None else make_excerpt(content, len(content), len(content), limit)
    report = compose(
        ORIGIN, REPORT_ID, failed, excerpt, NOW, lambda size: (seed * size)[2:] + next(seeds).to_bytes(2, "big")
    )
    wire = report.content
    assert wire.endswith(b"\r\n")
    lines = wire.split(b"\r\n")
    assert max(map(len, lines)) <= 999  # the dot of stuffing goes away again
    assert not any(b"\r" in line or b"\n" in line or b"\0" in line for line in lines)
    assert not any(line == b"." for line in lines)
    assert report.is_eightbit or wire.isascii()
    found = parsed_without_the_original(report.content)
    boundary = found.get_boundary()
    assert boundary is not None
    assert sum(line.startswith(b"--" + boundary.encode()) for line in lines) == len(parts_of(found)) + 1
    assert len(parts_of(found)) == (3 if excerpt is not None and excerpt.content else 2)
    of_message, *of_recipients = blocks_of(parts_of(found)[1])
    assert len(of_message.keys()) == 3
    assert len(of_recipients) == len(entries)
    for block, entry in zip(of_recipients, entries, strict=True):
        assert block["Final-Log-ID"] == f"0000000100000003-{entry.number}"
        assert block["Action"] == "failed"
        assert set(block.keys()) <= {
            *("Final-Recipient", "Action", "Status", "Remote-MTA", "Diagnostic-Code", "Last-Attempt-Date", "Final-Log-ID"),
            *("X-Mailismus-Attempts", "X-Mailismus-Attempt"),
        }
    for name in ("From", "To", "Date", "Subject", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type"):
        assert len(found.get_all(name, [])) == 1
    assert not set(found.keys()) - {
        *("Received", "From", "To", "Date", "Subject", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type"),
        *("In-Reply-To", "References", "Content-Transfer-Encoding"),
    }


def parsed_without_the_original(content: bytes) -> EmailMessage:
    """Read by Python's parser; defects inside the message that is returned are that message's own."""
    found = email.message_from_bytes(unstuffed(content), policy=email.policy.SMTP)
    assert not found.defects
    for part in parts_of(found):
        assert not part.defects
    return found


@settings(max_examples=60, deadline=None)
@given(CONTENTS, st.integers(1, 3000))
def test_what_is_returned_is_a_beginning_of_the_message(content: bytes, limit: int) -> None:
    stored = stuff(content)
    excerpt = make_excerpt(stored, len(content), len(stored), limit)
    assert content.startswith(excerpt.content)
    assert excerpt.is_whole == (len(content) <= limit)
    assert excerpt.size_bytes == len(content)
    assert not excerpt.is_whole or excerpt.content == content
    assert quopri.decodestring(quote(excerpt.content)) == excerpt.content
