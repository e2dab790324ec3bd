"""A message of a program of this machine: the checks, limits and trace field of SMTP, all recipients or none."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from twisted.internet.defer import Deferred

from mailismus.errors import Unavailable
from mailismus.mail.injected import Injected
from mailismus.smtp import replies
from mailismus.smtp.trace import read_received
from mailismus.submit.injection import Injection, later_policy
from tests.submit.fakes import DATE, SETTINGS, House


class Program:
    """One injection into a listener's desk."""

    def __init__(self, house: House | None = None) -> None:
        self.house = house or House()
        self.ends: list[Injected] = []
        self.rooms = 0
        self.injection = Injection(self.house.desk, 1000, self.ends.append, self.has_room)

    def has_room(self) -> None:
        self.rooms += 1

    def send(
        self,
        content: bytes = b"Subject: x\n\nbody\n",
        sender: bytes = b"a@b.example",
        to: Sequence[bytes] = (b"c@d.example",),
    ) -> None:
        """All of it."""
        if self.injection.begin(sender, to):
            self.injection.write(content)
            self.injection.finish()

    def refused(self) -> bytes:
        """The reply that refuses it; nothing is kept."""
        (end,) = self.ends
        assert not end.name
        assert not self.house.manager.accepted
        assert all(draft.is_abandoned for draft in self.house.manager.drafts)
        return end.reply


def test_a_message_is_accepted_when_it_is_durable_and_not_before() -> None:
    program = Program()
    program.send(b"Subject: x\n\n.body", to=(b"c@d.example", b"joe@our.example"))
    ((draft, envelope, done),) = program.house.manager.accepted
    assert program.ends == []
    done.callback(())
    assert program.ends == [Injected(name="0000000000000001")]
    assert envelope.sender == b"a@b.example"
    assert envelope.recipients == (b"c@d.example", b"joe@our.example")
    assert envelope.client == b"127.0.0.1"
    assert envelope.stuffed_dots == 1
    assert draft.content == (
        b"Received: from localhost (uid 1000)\r\n\tby mx.example with LOCAL id 0000000000000001;\r\n\t"
        + DATE
        + b"\r\nSubject: x\r\n\r\n..body\r\n"
    )
    came_in = read_received(draft.content, b"0000000000000001")
    assert came_in is not None
    assert came_in.protocol == b"LOCAL"
    assert b"proto=LOCAL" in b"".join(program.house.maillog.lines)


@pytest.mark.parametrize(
    ("recipients", "reply", "what"),
    [
        ((b"c@d.example", b"nobody@our.example"), replies.UNKNOWN_USER, b"nobody@our.example"),
        ((b"c@d.example", b"no address"), replies.BAD_RECIPIENT, b"no address"),
        ((b"c@d.example>\r\nDATA",), replies.BAD_RECIPIENT, b"c@d.example>\r\nDATA"),
        (tuple(b"c%d@d.example" % at for at in range(6)), replies.TOO_MANY_RECIPIENTS, b"c5@d.example"),
    ],
)
def test_one_bad_recipient_refuses_the_message(recipients: tuple[bytes, ...], reply: bytes, what: bytes) -> None:
    program = Program()
    program.send(to=recipients)
    assert program.refused() == reply
    assert program.ends[0].what == what


@pytest.mark.parametrize("sender", [b"no sender", b"a@b.example> SIZE=1", b"a\nb@c.example"])
def test_a_bad_sender_refuses_it(sender: bytes) -> None:
    program = Program()
    program.send(sender=sender)
    assert program.refused() == replies.BAD_SENDER


@pytest.mark.parametrize(
    ("content", "reply"),
    [
        (b"a\rb\n", replies.BARE_BYTES),
        (b"a\0b\n", replies.BARE_BYTES),
        (b"x" * (SETTINGS.maxmsgsize + 1), replies.TOO_LARGE),
        (b"Received: x\n" * 101 + b"\n", replies.LOOP),
    ],
)
def test_the_content_is_checked_as_over_smtp(content: bytes, reply: bytes) -> None:
    program = Program()
    program.send(content)
    assert program.refused() == reply


def test_the_null_sender_and_addresses_in_utf8_are_taken() -> None:
    program = Program()
    program.send(sender=b"", to=("jö@d.example".encode(),))
    ((_, envelope, _),) = program.house.manager.accepted
    assert envelope.sender == b""
    assert envelope.words is not None


def test_a_queue_without_room_refuses_before_the_content() -> None:
    house = House()
    house.manager.trouble = Unavailable("full", full=True)
    program = Program(house)
    program.send()
    assert program.refused() == replies.STORAGE_FULL


def test_a_failed_commit_is_told() -> None:
    program = Program()
    program.send()
    ((draft, _, done),) = program.house.manager.accepted
    done.errback(Unavailable("bad disk"))
    assert program.ends == [Injected(reply=replies.STORAGE_TROUBLE)]
    assert draft.is_abandoned


def test_a_program_waits_while_the_queue_has_no_room() -> None:
    program = Program()
    waiting: Deferred[None] = Deferred()
    assert program.injection.begin(b"", (b"c@d.example",))
    program.house.manager.waits.append(waiting)
    assert not program.injection.write(b"one\n")
    assert program.rooms == 0
    waiting.callback(None)
    assert program.rooms == 1
    assert program.injection.write(b"two\n")
    program.injection.finish()
    ((draft, _, _),) = program.house.manager.accepted
    assert draft.content.endswith(b"\r\none\r\ntwo\r\n")


def test_what_is_abandoned_before_its_end_is_forgotten_and_after_it_is_not() -> None:
    program = Program()
    assert program.injection.begin(b"", (b"c@d.example",))
    program.injection.write(b"one\n")
    program.injection.abandon()
    program.injection.abandon()
    assert program.house.manager.drafts[0].is_abandoned
    program = Program()
    program.send()
    program.injection.abandon()
    ((draft, _, done),) = program.house.manager.accepted
    done.callback(())
    assert not draft.is_abandoned
    assert program.ends == []


def test_no_limit_of_a_connection_holds() -> None:
    house = House(attrs.evolve(SETTINGS, maxmessages=1, maxbadreqs=1))
    for _ in range(3):
        program = Program(house)
        program.send()
        house.manager.accepted[-1][2].callback(())
        assert program.ends[0].name


@pytest.mark.parametrize("pieces", [(b"", b".dot\n"), (b".dot", b"", b"\n"), (b"",)])
def test_empty_pieces_change_nothing(pieces: tuple[bytes, ...]) -> None:
    program = Program()
    assert program.injection.begin(b"a@b.example", (b"c@d.example",))
    for piece in pieces:
        program.injection.write(piece)
    program.injection.finish()
    ((draft, envelope, _),) = program.house.manager.accepted
    assert envelope.stuffed_dots == len([piece for piece in pieces if piece.startswith(b".")])
    assert draft.content.endswith(b"\r\n..dot\r\n" if envelope.stuffed_dots else b"\r\n")


def test_for_a_program_that_has_ended_an_unknown_user_is_no_refusal() -> None:
    house = House()
    house.desk.policy = later_policy(house.desk.policy)
    program = Program(house)
    program.send(to=(b"nobody@our.example", b"c@d.example"))
    ((_, envelope, _),) = house.manager.accepted
    assert envelope.recipients == (b"nobody@our.example", b"c@d.example")
    strict = Program()
    strict.send(to=(b"nobody@our.example",))
    assert strict.refused() == replies.UNKNOWN_USER
