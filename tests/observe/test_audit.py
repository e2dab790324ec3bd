"""Lines of the audit."""

from __future__ import annotations

import json

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.observe.audit import Action, Audited, format_json, format_line, show_age

AT = 1795208336.139
RELAYED = Audited(
    Action.RELAYED,
    SpoolId(0x1_0000_0002),
    1,
    b"a@src.example",
    b"192.0.2.1",
    b"b@dst.example",
    b"mx.dst.example[2001:db8::2]:25",
    Reply(250, b"2.0.0", b"Ok"),
    "sent",
    1,
    AT - 0.402,
)
NO_USER = Reply(550, b"5.1.1", b"no such user")
STAMP = b"2026-11-20 20:58:56"


def line_of(audited: Audited) -> bytes:
    return format_line(audited, AT, STAMP)


def test_a_relayed_message_looks_as_in_the_original() -> None:
    assert line_of(RELAYED) == (
        b"2026-11-20 20:58:56.139 Relayed id=0000000100000002-1; From=a@src.example via 192.0.2.1; "
        b"To=b@dst.example via 2001:db8::2 - Transit=402ms\n"
    )


def test_a_local_delivery_has_no_address_of_a_host() -> None:
    local = attrs.evolve(RELAYED, action=Action.DELIVERED, host=b"local")
    assert b" Delivered id=0000000100000002-1; " in line_of(local)
    assert b"To=b@dst.example - Transit=" in line_of(local)


def test_a_failure_has_the_code_of_its_reply() -> None:
    bounced = attrs.evolve(RELAYED, action=Action.REPORTED, reply=NO_USER, status="bounced")
    assert b" Bounced Msg id=" in line_of(bounced)
    assert line_of(bounced).endswith(b"To=b@dst.example via 2001:db8::2; Status=550 - Transit=402ms\n")


def test_what_was_made_here_has_no_client_and_a_null_sender_is_empty() -> None:
    report = attrs.evolve(RELAYED, action=Action.REPORT_DISCARDED, sender=b"", client=b"-", host=b"none", reply=None)
    assert b" Discarding bounced NDR id=0000000100000002-1; From= src=MTA; To=b@dst.example - Transit=" in line_of(report)


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
def test_whatever_was_said_it_stays_one_plain_line(sender: bytes, recipient: bytes, text: bytes) -> None:
    hostile = attrs.evolve(
        RELAYED, action=Action.REPORTED, sender=sender, recipient=recipient, reply=NO_USER._replace(text=text)
    )
    for line in (line_of(hostile), format_json(hostile, AT, STAMP)):
        assert line.endswith(b"\n")
        assert line[:-1].isascii()
        assert line[:-1].decode().isprintable()


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_json_gives_back_what_was_said(sender: str, recipient: str, text: str) -> None:
    said = attrs.evolve(
        RELAYED, sender=sender.encode(), recipient=recipient.encode(), reply=NO_USER._replace(text=text.encode())
    )
    record = json.loads(format_json(said, AT, STAMP))
    assert (record["sender"], record["recipient"], record["reply"]) == (sender, recipient, f"550 5.1.1 {text}")


def test_json_has_all_there_is_to_say() -> None:
    reported = attrs.evolve(RELAYED, action=Action.REPORTED, reply=NO_USER, status="bounced", report=SpoolId(0x1_0000_0003))
    assert json.loads(format_json(reported, AT, b"2026-11-20T20:58:56")) == {
        "time": 1795208336,
        "event_time": "2026-11-20T20:58:56.139Z",
        "action": "reported",
        "spid": "0000000100000002",
        "number": 1,
        "sender": "a@src.example",
        "client": "192.0.2.1",
        "recipient": "b@dst.example",
        "relay": "mx.dst.example[2001:db8::2]:25",
        "reply": "550 5.1.1 no such user",
        "status": "bounced",
        "attempts": 1,
        "delay": 0.402,
        "report": "0000000100000003",
    }


def test_a_recipient_that_an_act_redirected_to_stands_before_the_one_that_was_written_to() -> None:
    redirected = attrs.evolve(RELAYED, original=b"old\n@src.example")
    assert b"To=b@dst.example for old\\x0a@src.example via 2001:db8::2" in line_of(redirected)
    assert json.loads(format_json(redirected, AT, STAMP))["original_recipient"] == "old\n@src.example"
    assert "original_recipient" not in json.loads(format_json(RELAYED, AT, STAMP))


def test_json_says_null_for_what_there_is_not() -> None:
    record = json.loads(format_json(attrs.evolve(RELAYED, client=b"-", reply=None), AT, STAMP))
    assert (record["client"], record["reply"], "report" in record) == (None, None, False)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.402, b"402ms"),
        (74.593, b"1m14s593ms"),
        (0, b"0ms"),
        (-3, b"0ms"),
        (60, b"1m"),
        (90061.001, b"1d1h1m1s1ms"),
    ],
)
def test_an_age_is_shown_in_all_its_units(seconds: float, shown: bytes) -> None:
    assert show_age(seconds) == shown
