"""What the mail hosts of the playground do, and its mail."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

import dns.message
import pytest
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from mailismus.__main__ import build_parser, main
from mailismus.demo.letters import write_letter
from mailismus.demo.manners import GREY_S, MOST_A_MINUTE, MOST_CONNECTIONS, SLOW_S, HostManners, Manner, domain_of_manner
from mailismus.demo.names import DemoNames
from mailismus.demo.playground import ADDRESSES, configuration, mail_hosts
from mailismus.demo.sink import SinkHost, SinkSession
from mailismus.demo.wording import DEMO, invitation

SENDER, RECIPIENT = b"news@well.test", b"ann@x.test"


def connected(manner: Manner, clock: Clock, number: int = 1) -> list[tuple[SinkSession, StringTransport]]:
    """So many connections with one host."""
    host = SinkHost(HostManners(manner), clock, clock.seconds)
    found = []
    for _ in range(number):
        session, transport = host.buildProtocol(None), StringTransport()
        assert session is not None
        session.makeConnection(transport)
        found.append((session, transport))
    return found


def test_a_host_that_is_well_takes_a_message() -> None:
    ((session, transport),) = connected(Manner.WELL, Clock())
    session.dataReceived(
        b"EHLO me\r\nMAIL FROM:<a@b.test>\r\nRCPT TO:<c@d.test>\r\nDATA\r\nSubject: x\r\n\r\n..x\r\n.\r\nQUIT\r\n"
    )
    codes = [line[:3] for line in transport.value().split(b"\r\n") if line[3:4] == b" "]
    assert codes == [b"220", b"250", b"250", b"250", b"354", b"250", b"221"]
    assert transport.disconnecting


def test_a_slow_host_takes_its_time_for_each_reply_and_keeps_their_order() -> None:
    clock = Clock()
    ((session, transport),) = connected(Manner.SLOW, clock)
    session.dataReceived(b"EHLO me\r\nNOOP\r\n")
    assert transport.value() == b""
    clock.advance(SLOW_S)
    assert transport.value().startswith(b"220 ")
    assert b"250" not in transport.value()
    clock.pump([SLOW_S, SLOW_S])
    assert transport.value().endswith(b"ENHANCEDSTATUSCODES\r\n250 2.0.0 OK\r\n")


def test_a_connection_that_ends_in_a_delay_leaves_nothing_behind() -> None:
    clock = Clock()
    ((session, _),) = connected(Manner.SLOW, clock)
    session.connectionLost()
    assert not clock.getDelayedCalls()


def test_a_throttling_host_refuses_connections_and_messages_beyond_its_limits() -> None:
    sessions = connected(Manner.THROTTLING, Clock(), MOST_CONNECTIONS + 1)
    assert [transport.value()[:3] for _, transport in sessions] == [b"220"] * MOST_CONNECTIONS + [b"421"]
    manners = HostManners(Manner.THROTTLING)
    assert [manners.answer_sender(1.0)[:3] for _ in range(MOST_A_MINUTE + 1)] == [b"250"] * MOST_A_MINUTE + [b"450"]
    assert manners.answer_sender(61.0).startswith(b"250")


def test_a_greylisting_host_takes_what_comes_again() -> None:
    manners = HostManners(Manner.GREYLISTING)
    assert manners.answer_recipient(SENDER, RECIPIENT, 5.0).startswith(b"451 4.7.1")
    assert manners.answer_recipient(SENDER, RECIPIENT, 5.0 + GREY_S - 1).startswith(b"451 4.7.1")
    assert manners.answer_recipient(SENDER, RECIPIENT, 5.0 + GREY_S).startswith(b"250")
    assert manners.answer_recipient(b"other@well.test", RECIPIENT, 50.0).startswith(b"451")


@pytest.mark.parametrize(("user", "code"), [("ann", b"452 4.2.2"), ("ivan", b"552 5.2.2"), ("nobody", b"550 5.1.1")])
def test_a_full_host_refuses_users_in_their_ways(user: str, code: bytes) -> None:
    assert HostManners(Manner.FULL).answer_recipient(SENDER, f"{user}@full.test".encode(), 0.0).startswith(code)


def test_letters_go_to_every_host() -> None:
    chance = random.Random(1).random
    letters = [write_letter(number, chance) for number in range(500)]
    assert {one.recipient.partition("@")[2] for one in letters} == {domain_of_manner(manner) for manner in Manner}
    assert all(one.content.isascii() and "\r\n\r\n" in one.content for one in letters)


@pytest.mark.parametrize(
    ("name", "kind", "answer"),
    [
        ("dead.test", "MX", ["10 mx.dead.test."]),
        ("mx.dead.test", "A", [ADDRESSES[Manner.DEAD]]),
        ("MX.Slow.TEST", "A", [ADDRESSES[Manner.SLOW]]),
        ("dead.test", "A", []),
        ("mx.dead.test", "AAAA", []),
    ],
)
def test_names_of_the_playground_are_answered(name: str, kind: str, answer: list[str]) -> None:
    data = DemoNames(mail_hosts()).answer(dns.message.make_query(name, kind).to_wire())
    assert data is not None
    response = dns.message.from_wire(data)
    assert response.rcode() == 0
    assert [str(record) for rrset in response.answer for record in rrset] == answer


def test_no_other_name_exists_and_garbage_has_no_answer() -> None:
    names = DemoNames(mail_hosts())
    data = names.answer(dns.message.make_query("example.org", "MX").to_wire())
    assert data is not None
    assert dns.message.from_wire(data).rcode() == 3
    assert names.answer(b"garbage") is None
    assert names.answer(b"") is None


def test_the_configuration_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "a & b"
    root.mkdir()
    file = root / "mailismus.xml"
    file.write_text(configuration(str(root), 0, 2525, 5353))
    assert main(["--config", str(file), "config", "check"]) == 0
    assert main(["--config", str(file), "config", "show"]) == 0
    assert f"admin/socket = {root}/admin.sock" in capsys.readouterr().out


def test_what_is_to_be_tried_can_be_pasted_into_a_shell() -> None:
    said = invitation(["/opt/it's here/mailismus"], "/tmp/a b/mailismus.xml", "/tmp/a b/server.log", "http://127.0.0.1:1/")
    (alias,) = (line.strip() for line in said.splitlines() if line.strip().startswith("alias "))
    (word,) = shlex.split(alias)[1:]
    assert shlex.split(word.removeprefix("m=")) == ["/opt/it's here/mailismus", "--config", "/tmp/a b/mailismus.xml"]
    tried = [shlex.split(line, comments=True)[1:] for line in said.splitlines() if line.startswith("  m ")]
    assert [build_parser().parse_args(words) for words in tried]
    assert {"hold", "release", "delete", "acts", "undo", "shape", "list", "flush"} <= {
        word for words in tried for word in words
    }


def test_everything_is_on_loopback() -> None:
    text = configuration("/nowhere", 0, 2525, 5353)
    assert all(address.startswith("127.") for address in ADDRESSES.values())
    assert 'interface="127.0.0.1"' in text
    assert all(domain_of_manner(manner) in DEMO for manner in Manner)
