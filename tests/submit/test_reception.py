"""From MAIL to the queue: sessions in memory against a manager that the test holds."""

from __future__ import annotations

import attrs
import pytest
from twisted.internet.defer import Deferred

from mailismus.errors import Corrupt, Unavailable
from mailismus.mail.directory import Directory
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.mail.networks import Networks
from mailismus.smtp import replies
from mailismus.submit import sessions
from tests.submit.fakes import DATE, SETTINGS, House

EHLO = b"EHLO client.example\r\n"
ENVELOPE = b"MAIL FROM:<a@x.example>\r\nRCPT TO:<joe@our.example>\r\n"
MESSAGE = b"Message-ID: <1@x.example>\r\nSubject: s\r\n\r\nbody\r\n"
QUEUED = b"250 2.0.0 Ok: queued as 0000000000000001\r\n"
TRACE = (
    b"Received: from client.example ([127.0.0.1])\r\n\tby mx.example with ESMTP id 0000000000000001;\r\n\t" + DATE + b"\r\n"
)


def test_a_message_is_durable_before_its_250() -> None:
    house = House()
    client = house.connect()
    assert client.heard() == b"220 mx.example ESMTP\r\n"
    assert client.say(EHLO + ENVELOPE + b"DATA\r\n").endswith(replies.START_CONTENT)
    assert client.say(MESSAGE + b".\r\n") == b""
    draft, envelope, _ = house.manager.accepted[0]
    assert envelope == Envelope(b"a@x.example", (b"joe@our.example",), b"127.0.0.1")
    assert draft.content == TRACE + MESSAGE
    house.manager.fire()
    assert client.heard() == QUEUED
    assert house.maillog.lines == [
        b"0000000000000001: client=unknown[127.0.0.1], proto=ESMTP",
        b"0000000000000001: from=<a@x.example>, size=%d, nrcpt=1, message-id=<1@x.example>" % len(TRACE + MESSAGE),
    ]
    desk = house.desk
    assert (desk.messages, desk.recipients, desk.content_bytes, desk.refusals) == (1, 1, draft.stored_bytes, 0)


def test_a_provider_that_is_durable_at_once_is_answered_in_the_same_turn() -> None:
    house = House()
    house.manager.is_quick = True
    assert house.connect().say(EHLO + ENVELOPE + b"DATA\r\n" + MESSAGE + b".\r\nQUIT\r\n").endswith(QUEUED + replies.BYE)


def test_an_empty_message_has_its_trace_field() -> None:
    house = House()
    house.connect().say(EHLO + ENVELOPE + b"DATA\r\n.\r\n")
    assert house.manager.accepted[0][0].content == TRACE


def test_the_size_of_a_message_is_told_without_doubled_dots() -> None:
    house = House()
    house.manager.is_quick = True
    content = b"..\r\n" * 33_332 + b"..x\r\n"
    assert house.connect().say(EHLO + ENVELOPE + b"DATA\r\n" + content + b".\r\n").endswith(QUEUED)
    draft, envelope, _ = house.manager.accepted[0]
    assert draft.content == TRACE + content
    assert envelope.stuffed_dots == 33_333
    assert b" size=%d, " % (len(TRACE + content) - 33_333) in house.maillog.lines[1]


def test_content_byte_by_byte_is_stored_as_it_came() -> None:
    house = House()
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n")
    for byte in MESSAGE + b"..dot\r\n.\r\n":
        client.say(bytes([byte]))
    assert house.manager.accepted[0][0].content == TRACE + MESSAGE + b"..dot\r\n"
    house.manager.fire()
    assert b"message-id=<1@x.example>" in house.maillog.lines[1]


@pytest.mark.parametrize(
    ("hello", "opening"),
    [
        (b"HELO a.example", b"from a.example ([127.0.0.1])\r\n\tby mx.example with SMTP id"),
        (b"EHLO MY_PC", b"from unknown ([127.0.0.1])\r\n\tby mx.example with ESMTP id"),
        (b"EHLO x(y)", b"from unknown ([127.0.0.1])"),
        (b"EHLO [192.0.2.9]", b"from [192.0.2.9] ([127.0.0.1])"),
    ],
)
def test_the_trace_field_tells_name_address_and_protocol(hello: bytes, opening: bytes) -> None:
    house = House()
    house.connect().say(hello + b"\r\n" + ENVELOPE + b"DATA\r\n.\r\n")
    assert house.manager.accepted[0][0].content.startswith(b"Received: " + opening)


def test_an_ipv6_client_is_told_as_a_literal() -> None:
    house = House()
    house.connect("2001:db8::7").say(EHLO + ENVELOPE + b"DATA\r\n.\r\n")
    draft, envelope, _ = house.manager.accepted[0]
    assert b"([IPv6:2001:db8::7])" in draft.content
    assert envelope.client == b"2001:db8::7"


def test_the_case_of_addresses_is_kept() -> None:
    house = House()
    wire = b"MAIL FROM:<A@X.example>\r\nRCPT TO:<JOE@Our.example>\r\nRCPT TO:<postmaster>\r\nDATA\r\n.\r\n"
    house.connect().say(EHLO + wire)
    assert house.manager.accepted[0][1] == Envelope(b"A@X.example", (b"JOE@Our.example", b"postmaster"), b"127.0.0.1")


@pytest.mark.parametrize(
    ("declared", "content", "eightbit"),
    [
        (b"", b"7 bit\r\n", False),
        (b"", b"8 bit \xe9\r\n", True),
        (b" BODY=8BITMIME", b"7 bit\r\n", False),
        (b" BODY=8BITMIME", b"7 bit\r\n" * 10_000 + b"8 bit \xff\r\n", True),
        (b" BODY=7BIT", b"\x80", True),
    ],
)
def test_8_bit_mail_is_what_has_such_content_whatever_its_client_declared(
    declared: bytes, content: bytes, eightbit: bool
) -> None:
    house = House()
    client = house.connect()
    client.say(EHLO + b"MAIL FROM:<a@x.example>" + declared + b"\r\nRCPT TO:<joe@our.example>\r\nDATA\r\n")
    for at in range(0, len(content), 20_000):
        client.say(content[at : at + 20_000])
    client.say(b"\r\n.\r\n")
    client.say(ENVELOPE + b"DATA\r\nthe next message is another one\r\n.\r\n")
    house.manager.fire()
    client.say(b"")
    assert [envelope.eightbit for _, envelope, _ in house.manager.accepted] == [eightbit, False]


@pytest.mark.parametrize(
    ("trouble", "reply"),
    [(Unavailable("sick"), replies.STORAGE_TROUBLE), (Unavailable("no room", full=True), replies.STORAGE_FULL)],
)
def test_trouble_known_before_is_told_before_the_content(trouble: Unavailable, reply: bytes) -> None:
    house = House()
    house.manager.trouble = trouble
    client = house.connect()
    assert client.say(EHLO + ENVELOPE + b"DATA\r\n").endswith(reply)
    assert b"NOQUEUE: reject: DATA from unknown[127.0.0.1]: " + reply[:-2] in house.maillog.lines[0]
    house.manager.trouble = None
    assert client.say(b"DATA\r\n") == replies.START_CONTENT


@pytest.mark.parametrize(
    ("trouble", "reply"),
    [
        (Unavailable("sick"), replies.STORAGE_TROUBLE),
        (Unavailable("no room", full=True), replies.STORAGE_FULL),
        (Corrupt("x", 0, "bad"), replies.STORAGE_TROUBLE),
        (ZeroDivisionError("a bug"), replies.STORAGE_TROUBLE),
    ],
)
def test_a_failed_commit_is_never_250_and_always_4xx(trouble: Exception, reply: bytes) -> None:
    house = House()
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n.\r\n")
    draft, _, waiting = house.manager.accepted[0]
    waiting.errback(trouble)
    assert client.heard() == reply
    assert draft.is_abandoned
    assert house.maillog.lines == [
        b"0000000000000001: reject: END-OF-MESSAGE from unknown[127.0.0.1]: "
        + reply[:-2]
        + b"; from=<a@x.example> proto=ESMTP helo=<client.example>"
    ]
    assert client.say(ENVELOPE + b"DATA\r\n.\r\n").endswith(replies.START_CONTENT)
    house.manager.fire()
    assert client.heard() == b"250 2.0.0 Ok: queued as 0000000000000002\r\n"


def test_what_is_pipelined_behind_the_dot_waits_for_its_answer() -> None:
    house = House()
    client = house.connect()
    out = client.say(EHLO + ENVELOPE + b"DATA\r\n.\r\n" + ENVELOPE + b"NOOP\r\n")
    assert out.endswith(replies.START_CONTENT)
    house.manager.fire()
    assert client.heard() == QUEUED + replies.SENDER_OK + replies.RECIPIENT_OK + replies.OK


def test_a_client_that_vanishes_behind_the_dot_has_sent_its_mail() -> None:
    house = House()
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n" + MESSAGE + b".\r\n")
    client.wire.drop()
    draft = house.manager.accepted[0][0]
    assert not draft.is_abandoned
    house.manager.fire()
    assert len(house.maillog.lines) == 2
    assert house.desk.messages == 1


@pytest.mark.parametrize("content", [b"", b"x", MESSAGE, MESSAGE + b".", MESSAGE + b".\r"])
def test_a_client_that_vanishes_before_it_has_not(content: bytes) -> None:
    house = House()
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n" + content)
    client.wire.drop()
    assert house.manager.drafts[0].is_abandoned
    assert not house.manager.accepted


@pytest.mark.parametrize(
    ("content", "reply"),
    [
        (b"a\nb\r\n", replies.BARE_BYTES),
        (b"a\rb\r\n", replies.BARE_BYTES),
        (b"a\0b\r\n", replies.BARE_BYTES),
        (b"x" * 100_001 + b"\r\n", replies.TOO_LARGE),
        (b"Received: x\r\n" * 51 + b"\r\n", replies.LOOP),
        (b"RECEIVED: x\r\n y\r\n" * 51, replies.LOOP),
    ],
)
def test_bad_content_is_refused_at_its_end_for_trusted_clients_too(content: bytes, reply: bytes) -> None:
    house = House()
    client = house.connect("127.0.0.1")
    assert client.say(EHLO + ENVELOPE + b"DATA\r\n" + content).endswith(replies.START_CONTENT)
    assert client.say(b".\r\nNOOP\r\n") == reply + replies.OK
    assert house.manager.drafts[0].is_abandoned
    assert not house.manager.accepted
    assert len(house.maillog.lines) == 1
    assert house.maillog.lines[0].startswith(b"0000000000000001: reject: END-OF-MESSAGE from unknown[127.0.0.1]: 55")
    assert client.say(ENVELOPE) == replies.SENDER_OK + replies.RECIPIENT_OK


@pytest.mark.parametrize(
    "content",
    [
        b"Received: x\r\n" * 50 + b"\r\n",
        b"Subject: x\r\n\r\n" + b"Received: x\r\n" * 60,
        b"\r\n" + b"Received: x\r\n" * 60,
        b"X-Received: x\r\n" * 60,
    ],
)
def test_only_received_fields_of_the_header_make_a_loop(content: bytes) -> None:
    house = House()
    house.connect().say(EHLO + ENVELOPE + b"DATA\r\n" + content + b".\r\n")
    assert len(house.manager.accepted) == 1


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        (b"", b"<>"),
        (b"MESSAGE-id:<a@b>\r\n", b"<a@b>"),
        (b"Message-ID:\r\n <a@b>\r\n", b"<a@b>"),
        (b"Message-ID: <a@b>\r\n\t(folded)\r\n", b"<a@b>"),
        (b"Message-ID: <\x1b[2J\xff@b>\r\n", b"<\\x1b[2J\\xff@b>"),
        (b"Message-ID: <" + b"x" * 500 + b">\r\n", b"<" + b"x" * 249),
        (b"Subject: x\r\n\r\nMessage-ID: <body@b>\r\n", b"<>"),
    ],
)
def test_the_message_id_is_logged_harmless_and_bounded(header: bytes, shown: bytes) -> None:
    house = House()
    house.manager.is_quick = True
    house.connect().say(EHLO + ENVELOPE + b"DATA\r\n" + header + b"\r\n.\r\n")
    assert house.maillog.lines[1].endswith(b", message-id=" + shown)


def test_refusals_are_logged() -> None:
    house = House()
    client = house.connect("192.0.2.1")
    client.say(EHLO + b"MAIL FROM:<> SIZE=100001\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<b@y.example>\r\n")
    assert house.maillog.lines == [
        b"NOQUEUE: reject: MAIL from unknown[192.0.2.1]: 552 5.3.4 Message too big; "
        b"from=<> proto=ESMTP helo=<client.example>",
        b"NOQUEUE: reject: RCPT from unknown[192.0.2.1]: 554 5.7.1 Relay access denied; "
        b"from=<a@x.example> to=<b@y.example> proto=ESMTP helo=<client.example>",
    ]
    assert house.desk.refusals == 2


RELAYING = [
    b"user@other.example",
    b"user%other.example@our.example",
    b"other.example!user@our.example",
    b'"user@other.example"@our.example',
    b'"user%other.example"@our.example',
    b"@our.example:user@other.example",
    b"@our.example,@our.example:user@other.example",
    b"user@[127.0.0.1]",
    b"user@[192.0.2.1]",
    b"user@our.example@other.example",
    b"user@other.example@our.example",
    b"user@other.example.",
    b"joe@our.example.",
    b"USER@OTHER.EXAMPLE",
    b"@our.example",
    b"@other.example",
    b'""@other.example',
    b"joe@our.example\0@other.example",
    b"user",
]


@pytest.mark.parametrize("sender", [b"", b"joe@our.example", b"postmaster@our.example", b"x@[127.0.0.1]"])
@pytest.mark.parametrize("recipient", RELAYING)
def test_strangers_relay_nothing_whatever_the_addresses_look_like(recipient: bytes, sender: bytes) -> None:
    house = House()
    client = house.connect("192.0.2.1")
    out = client.say(EHLO + b"MAIL FROM:<" + sender + b">\r\n").splitlines()
    assert out[-1].startswith(b"250 2.1.0")
    assert client.say(b"RCPT TO:<" + recipient + b">\r\n").startswith(b"5")
    assert client.say(b"DATA\r\n") == replies.NO_RECIPIENTS


def test_a_source_route_to_one_of_us_is_dropped() -> None:
    house = House()
    house.connect("192.0.2.1").say(
        EHLO + b"MAIL FROM:<@r.example:a@x.example>\r\nRCPT TO:<@other.example:joe@our.example>\r\nDATA\r\n.\r\n"
    )
    envelope = house.manager.accepted[0][1]
    assert (envelope.sender, envelope.recipients) == (b"a@x.example", (b"joe@our.example",))


def test_too_many_recipients_are_452_and_the_others_get_their_mail() -> None:
    house = House()
    client = house.connect()
    recipients = [b"RCPT TO:<r%d@y.example>\r\n" % number for number in range(20)]
    out = client.say(EHLO + b"MAIL FROM:<a@x.example>\r\n" + b"".join(recipients))
    assert out.count(replies.RECIPIENT_OK) == 5
    assert out.count(replies.TOO_MANY_RECIPIENTS) == 15
    client.say(b"DATA\r\n.\r\n")
    assert len(house.manager.accepted[0][1].recipients) == 5


def test_an_envelope_too_large_for_the_queue_is_452() -> None:
    house = House(max_envelope_bytes=200)
    recipients = [b"RCPT TO:<%b@y.example>\r\n" % name for name in (b"q", b"r", b"q", b"s")]
    out = house.connect().say(EHLO + b"MAIL FROM:<a@x.example>\r\n" + b"".join(recipients))
    assert out.endswith(replies.RECIPIENT_OK * 3 + replies.TOO_MANY_RECIPIENTS)


SAME_MAILBOXES = [
    (b"joe@our.example", b"JOE@OUR.EXAMPLE"),
    (b"joe@our.example", b'"joe"@our.example'),
    (b"joe@our.example", b"joe@other-of-ours.example"),
    (b"admin@our.example", b"postmaster"),
    (b"postmaster@our.example", b"PostMaster@Other-Of-Ours.example"),
    (b"bob@y.example", b"bob@Y.EXAMPLE"),
    (b"bob@y.example", b'"bob"@y.example'),
    (b'"b\\o b"@y.example', b'"bo\\ b"@y.example'),
    (b"bob@[192.0.2.7]", b"bob@[192.0.2.7]"),
    (b"bob@[IPv6:2001:db8::1]", b"bob@[ipv6:2001:DB8:0:0:0:0:0:1]"),
]
OTHER_MAILBOXES = [
    (b"joe@our.example", b"admin@our.example"),
    (b"joe@our.example", b"joe@y.example"),
    (b"bob@y.example", b"Bob@y.example"),
    (b"bob@y.example", b"bob@z.example"),
    (b"bob@[192.0.2.7]", b"bob@[192.0.2.8]"),
    (b"bob@[IPv6:2001:db8::1]", b"bob@[IPv6:2001:db8::2]"),
]


@pytest.mark.parametrize(("first", "second"), SAME_MAILBOXES)
def test_a_mailbox_that_is_named_again_gets_the_message_once(first: bytes, second: bytes) -> None:
    house = House()
    house.manager.is_quick = True
    client = house.connect()
    for one, other in ((first, second), (second, first)):
        client.say(EHLO + b"MAIL FROM:<a@x.example>\r\n")
        for recipient in (one, other, b"last@y.example", other):
            assert client.say(b"RCPT TO:<%b>\r\n" % recipient) == replies.RECIPIENT_OK
        client.say(b"DATA\r\n.\r\n")
        assert house.manager.accepted[-1][1].recipients == (one, b"last@y.example")
        assert b", nrcpt=2, " in house.maillog.lines[-1]
    assert house.desk.recipients == 4


@pytest.mark.parametrize(("first", "second"), OTHER_MAILBOXES)
def test_another_mailbox_gets_a_message_of_its_own(first: bytes, second: bytes) -> None:
    house = House()
    wire = b"MAIL FROM:<a@x.example>\r\nRCPT TO:<%b>\r\nRCPT TO:<%b>\r\nDATA\r\n.\r\n" % (first, second)
    house.connect().say(EHLO + wire)
    assert house.manager.accepted[0][1].recipients == (first, second)


def test_what_one_transaction_named_is_forgotten_in_the_next() -> None:
    house = House()
    house.manager.is_quick = True
    client = house.connect()
    twice = b"RCPT TO:<joe@our.example>\r\nRCPT TO:<bob@y.example>\r\n" * 2
    client.say(EHLO + b"MAIL FROM:<a@x.example>\r\n" + twice + b"RSET\r\n")
    for _ in range(2):
        client.say(b"MAIL FROM:<a@x.example>\r\n" + twice + b"DATA\r\n.\r\n")
        assert house.manager.accepted[-1][1].recipients == (b"joe@our.example", b"bob@y.example")


def test_recipients_are_limited_by_their_commands_not_by_their_mailboxes() -> None:
    house = House()
    out = house.connect().say(EHLO + b"MAIL FROM:<a@x.example>\r\n" + b"RCPT TO:<joe@our.example>\r\n" * 7)
    assert out.endswith(replies.SENDER_OK + replies.RECIPIENT_OK * 5 + replies.TOO_MANY_RECIPIENTS * 2)


def test_messages_of_a_session_are_limited() -> None:
    house = House(attrs.evolve(SETTINGS, maxmessages=1))
    house.manager.is_quick = True
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n.\r\n")
    assert client.say(ENVELOPE) == replies.TOO_MANY_MESSAGES
    assert not client.is_open


def test_reading_stops_while_the_disk_is_behind() -> None:
    house = House()
    wait: Deferred[None] = Deferred()
    house.manager.waits.append(wait)
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\nfirst\r\n")
    assert client.wire.producerState == "paused"
    client.say(b"second\r\n.\r\nNOOP\r\n")  # what the kernel's hand-over still brings
    assert not house.manager.accepted
    wait.callback(None)
    assert client.wire.producerState == "producing"
    assert house.manager.accepted[0][0].content.endswith(b"first\r\nsecond\r\n")
    house.manager.fire()
    assert client.heard().endswith(QUEUED + replies.OK)


def test_the_disk_may_be_behind_with_the_last_piece() -> None:
    house = House()
    wait: Deferred[None] = Deferred()
    house.manager.waits.append(wait)
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n" + MESSAGE + b".\r\nNOOP\r\n")
    assert not house.manager.accepted
    wait.callback(None)
    house.manager.fire()
    assert client.heard().endswith(QUEUED + replies.OK)


def test_a_disk_that_catches_up_at_once_stops_nothing() -> None:
    house = House()
    wait: Deferred[None] = Deferred()
    wait.callback(None)
    house.manager.waits.append(wait)
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n" + MESSAGE + b".\r\n")
    assert len(house.manager.accepted) == 1


def test_a_client_that_vanishes_while_the_disk_is_behind_has_not_sent_its_mail() -> None:
    house = House()
    wait: Deferred[None] = Deferred()
    house.manager.waits.append(wait)
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n" + MESSAGE)
    client.wire.drop()
    wait.callback(None)
    assert house.manager.drafts[0].is_abandoned
    assert not house.manager.accepted


def test_rset_and_quit_leave_nothing_of_a_transaction() -> None:
    house = House()
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"RSET\r\n")
    assert client.say(b"DATA\r\n") == replies.BAD_SEQUENCE
    client.say(b"MAIL FROM:<z@x.example>\r\nRCPT TO:<postmaster>\r\nDATA\r\n.\r\n")
    assert house.manager.accepted[0][1] == Envelope(b"z@x.example", (b"postmaster",), b"127.0.0.1")


def test_the_date_goes_with_the_clock() -> None:
    house = House()
    house.manager.is_quick = True
    client = house.connect()
    client.say(EHLO + ENVELOPE + b"DATA\r\n.\r\n")
    house.clock.advance(1)
    client.say(ENVELOPE + b"DATA\r\n.\r\n")
    assert house.manager.drafts[1].content.endswith(b"22:13:21 +0000\r\n")


def test_messages_of_one_batch_are_all_logged_before_the_first_answer_and_a_broken_answer_affects_no_other() -> None:
    house = House()
    clients = [house.connect() for _ in range(3)]
    for client in clients:
        client.say(EHLO + ENVELOPE + b"DATA\r\nx\r\n.\r\n")
    marks = [client.session._reception for client in clients]
    logged: list[int] = []

    def broken(reply: bytes) -> None:
        logged.append(len(house.maillog.lines))
        raise RuntimeError(reply)

    marks[0]._answer = broken
    house.desk.on_durable(marks, [()] * 3)
    assert logged == [6]
    assert [line[:16] for line in house.maillog.lines] == [b"%016X" % (number // 2 + 1) for number in range(6)]
    assert [client.heard() for client in clients] == [b"", *(replies.queued(SpoolId(number)) for number in (2, 3))]
    assert (house.desk.messages, house.desk.recipients) == (3, 3)


def test_the_standing_of_a_host_that_was_here_before_follows_the_configuration() -> None:
    house = House()
    command = EHLO + b"MAIL FROM:<a@x.example>\r\nRCPT TO:<b@y.example>\r\n"
    assert house.connect().say(command).endswith(replies.RECIPIENT_OK)
    present = house.desk.policy
    house.desk.policy = attrs.evolve(present, limits=attrs.evolve(SETTINGS, relay_clients=Networks()))
    assert house.connect().say(command).endswith(replies.RELAY_DENIED)
    house.desk.policy = present
    assert house.connect().say(command).endswith(replies.RECIPIENT_OK)


def test_the_standings_of_no_more_hosts_are_known_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_KNOWN", 3)
    house = House()
    for number in range(10):
        house.connect(f"192.0.2.{number}").session.give_up()
        assert len(house.factory._standings) <= 3


UTF8_CASES = [
    # sender, recipient, content, the message's words
    (b"a@x.example", b"joe@our.example", b"Subject: a\r\n\r\n\xc3\xbc\r\n", None),
    (b"a@x.example", b"joe@our.example", b"Subject: \xc3\xbc\r\n\r\nx\r\n", b"UTF8=HEADER"),
    (b"a@x.example", b"joe@our.example", b"A: b\r\n" * 10_000 + b"Subject: \xc3\xbc\r\n\r\nx\r\n", b"UTF8=HEADER"),
    (b"a@x.example", b"joe@our.example", b"Subject: \xc3\xbc\r\n" + b"A: b\r\n" * 5_000 + b"\r\nx\r\n", b"UTF8=HEADER"),
    (b"j\xc3\xb6@x.example", b"joe@our.example", b"Subject: a\r\n\r\nx\r\n", b"UTF8=ADDRESS"),
    (b"a@x.example", b"j\xc3\xb6@b\xc3\xbccher.example", b"\r\n\xc3\xbc\r\n", b"UTF8=ADDRESS"),
    (b"", b"joe@our.example", b"\r\nx\r\n", None),
]


@pytest.mark.parametrize(("sender", "recipient", "content", "words"), UTF8_CASES)
def test_what_needs_smtputf8_is_noted_of_mail_that_declares_it(
    sender: bytes, recipient: bytes, content: bytes, words: bytes | None
) -> None:
    house = House()
    client = house.connect()
    client.say(EHLO + b"MAIL FROM:<%b> SMTPUTF8\r\nRCPT TO:<%b>\r\nDATA\r\n" % (sender, recipient))
    client.say(content + b".\r\n")
    house.manager.fire()
    client.say(b"MAIL FROM:<a@x.example>\r\nRCPT TO:<joe@our.example>\r\nDATA\r\n")
    client.say(b"Subject: \xc3\xbc\r\n\r\nx\r\n.\r\n")
    house.manager.fire()
    (draft, envelope, _), (other, plain_envelope, _) = house.manager.accepted
    assert (envelope.sender, envelope.recipients, envelope.words) == (sender, (recipient,), words)
    assert plain_envelope.words is None
    assert b" with UTF8SMTP id " in draft.content
    assert b" with ESMTP id " in other.content
    lines = b"\n".join(house.maillog.lines)
    assert lines.isascii()


def test_addresses_in_utf_8_are_refused_where_they_are_not_declared() -> None:
    house = House()
    client = house.connect()
    refused = b"553 5.6.7 An address in UTF-8 needs the parameter SMTPUTF8 of MAIL\r\n"
    assert client.say(EHLO + b"MAIL FROM:<j\xc3\xb6@x.example>\r\n").endswith(refused)
    assert client.say(b"MAIL FROM:<a@x.example>\r\nRCPT TO:<j\xc3\xb6@x.example>\r\n").endswith(refused)
    assert client.say(b"RSET\r\nMAIL FROM:<a@x.example> SMTPUTF8\r\n").endswith(replies.SENDER_OK)
    assert client.say(b"RCPT TO:<j\xc3\xb6@x.example>\r\n").endswith(replies.RECIPIENT_OK)
    assert client.say(b"RSET\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<j\xc3\xb6@x.example>\r\n").endswith(refused)


def test_a_local_domain_is_local_in_u_labels_too() -> None:
    house = House()
    directory = Directory(frozenset({b"xn--bcher-kva.example"}), frozenset({b"joe"}), b"joe")
    house.desk.policy = attrs.evolve(house.desk.policy, directory=directory)
    client = house.connect()
    begin = EHLO + b"MAIL FROM:<a@x.example> SMTPUTF8\r\n"
    assert client.say(begin + "RCPT TO:<joe@BÜCHER.example>\r\n".encode()).endswith(replies.RECIPIENT_OK)
    assert client.say("RCPT TO:<jörg@bücher.example>\r\n".encode()).endswith(replies.UNKNOWN_USER)
    client.say(b"RCPT TO:<joe@xn--bcher-kva.example>\r\nDATA\r\n.\r\n")
    assert house.manager.accepted[0][1].recipients == ("joe@BÜCHER.example".encode(),)
