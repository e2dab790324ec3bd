"""Reasons of acts as others read them."""

from __future__ import annotations

from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.acts.act import ActKind, Order, new_act
from mailismus.queue.acts.decide import settlement_of
from mailismus.queue.interface import Area, Entry, Message


def test_a_reason_is_one_line_of_a_reply() -> None:
    entry = Entry(1, b"a@x.example", Area.DEFERRED, 5.0, 1)
    message = Message(SpoolId(1), b"joe@x.example", b"-", False, 1.0, 10, 1, [entry])
    for reason, told in (
        ("spam\r\n.\r\n250 ok", b"spam . 250 ok"),
        ("Stra\u00dfe\x1b[31m\u2028x", b"Stra\xc3\x9fe\\x1b[31m x"),
    ):
        act = new_act(7, Order(ActKind.BOUNCE, 0, (), reason), 2.0)
        assert settlement_of(act, message, entry, 3.0, 0.0).reply == Reply(
            554, b"5.7.0", b"returned by the administrator: " + told
        )
    long = new_act(7, Order(ActKind.BOUNCE, 0, (), "x" * 1000), 2.0)
    reply = settlement_of(long, message, entry, 3.0, 0.0).reply
    assert reply is not None
    assert len(reply.text) == 500
    assert reply.text.endswith(b"xx...")
