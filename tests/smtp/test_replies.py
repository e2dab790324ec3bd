"""The server's fixed replies."""

from __future__ import annotations

import re

import pytest

from mailismus.mail.ids import SpoolId
from mailismus.smtp import replies
from mailismus.smtp.extensions import hello_replies

FIXED = {name: value for name, value in vars(replies).items() if isinstance(value, bytes)}


@pytest.mark.parametrize("name", sorted(FIXED))
def test_every_reply_is_one_line_with_the_enhanced_status_of_its_class(name: str) -> None:
    reply = FIXED[name]
    found = re.fullmatch(rb"([2-5])[0-9]{2} (?:([2-5])\.[0-9]{1,3}\.[0-9]{1,3} )?[ -~]{2,80}\r\n", reply)
    assert found
    if name == "START_CONTENT":
        assert found[2] is None
    else:
        assert found[1] == found[2]


def test_a_queued_message_is_named_by_its_spool_id() -> None:
    assert replies.queued(SpoolId(0xAB)) == b"250 2.0.0 Ok: queued as 00000000000000AB\r\n"


def test_hello_is_answered_with_our_name_and_ehlo_with_the_extensions() -> None:
    hello, extended = hello_replies(b"mx.example", 1000)
    assert hello == b"250 mx.example\r\n"
    keywords = (b"PIPELINING", b"SIZE 1000", b"8BITMIME", b"SMTPUTF8")
    assert extended == b"250-mx.example\r\n%b250 ENHANCEDSTATUSCODES\r\n" % b"".join(b"250-%b\r\n" % one for one in keywords)
