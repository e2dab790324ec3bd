"""The client engine's commands and outcomes at every short sequence of replies: the wire does not change unnoticed.

A digest stands for the bytes written and the calls of the owner, with the transaction's phase, after each reply. Where a
change is meant, `python -m tests.smtp.test_client_sequences` prints the new digests.
"""

from __future__ import annotations

import hashlib
import itertools

import attrs
import pytest

from mailismus.mail.reply import Reply
from mailismus.smtp.client.pipelining import Pipelining
from tests.fakes.transactions import ACCEPTED, PIPELINING, Letter, RecordingOwner

Action = bytes | str
REPLIES: tuple[Action, ...] = (b"250 ok\r\n", b"354 go\r\n", b"450 no\r\n", b"550 no\r\n", b"503 eh\r\n", b"421 bye\r\n")
REPLIES_AND_MORE: tuple[Action, ...] = (*REPLIES, b"552 many\r\n", ACCEPTED, b"2", "lost", "cut off", "quit")
CONTENT: tuple[Action, ...] = (b"250 ok\r\n", b"550 no\r\n", b"421 bye\r\n", "piece", "end", "spoil", "lost", "cut off")


class PhaseRecorder(RecordingOwner):
    """Tells the phase too: the deliverer goes by it."""

    def on_finished(self, transaction: Letter, reply: Reply) -> None:
        super().on_finished(transaction, reply)
        self.fates.append(transaction.phase.name)

    def on_untried(self, transaction: Letter) -> None:
        self.fates.append(transaction.phase.name)
        super().on_untried(transaction)


@attrs.frozen
class Start:
    """Where the sequences begin: what the server said before, and of which kind the session is."""

    before: tuple[bytes, ...] = (b"220 mx\r\n", PIPELINING)
    recipients: int = 1
    pipelining: Pipelining = Pipelining.INNOCENT
    needs_helo: bool = False
    max_pipeline: int = 25
    is_streamed: bool = False
    actions: tuple[Action, ...] = REPLIES_AND_MORE
    length: int = 3


STARTS = {
    "the greeting": Start(before=(), actions=REPLIES, length=4),
    "the greeting of a host that needs HELO": Start(before=(), needs_helo=True, actions=REPLIES, length=4),
    "EHLO": Start(before=(b"220 mx\r\n",)),
    "MAIL, in steps": Start(before=(b"220 mx\r\n", b"250 mx\r\n"), recipients=2, length=4),
    "MAIL, in steps to a host in doubt": Start(pipelining=Pipelining.DOUBTED),
    "MAIL, in groups of two": Start(recipients=3, max_pipeline=2),
    "MAIL, sent ahead": Start(length=4),
    "MAIL, sent ahead to a host not yet proven": Start(pipelining=Pipelining.UNPROVEN),
    "MAIL, of two recipients": Start(recipients=2),
    "content that comes in pieces": Start(before=(b"220 mx\r\n", PIPELINING, ACCEPTED), is_streamed=True, actions=CONTENT),
    "the final dot": Start(before=(b"220 mx\r\n", PIPELINING, ACCEPTED), length=4),
    "the final dot to a host not yet proven": Start(
        before=(b"220 mx\r\n", PIPELINING, ACCEPTED), pipelining=Pipelining.UNPROVEN
    ),
}
DIGESTS: dict[str, str] = {
    "the greeting": "dacbaa4e835e9032",
    "the greeting of a host that needs HELO": "4945c6f77e2d6d6a",
    "EHLO": "965567d3a1b51e93",
    "MAIL, in steps": "a33b7d03408d30d4",
    "MAIL, in steps to a host in doubt": "671d9605cd7e9ed9",
    "MAIL, in groups of two": "069fb22292fe1686",
    "MAIL, sent ahead": "fb2520e6cd65d0cf",
    "MAIL, sent ahead to a host not yet proven": "77fdc41bf284a325",
    "MAIL, of two recipients": "c58abb1a0acd41ac",
    "content that comes in pieces": "6ed6257ff4a8d9d3",
    "the final dot": "50536f8a873ba185",
    "the final dot to a host not yet proven": "c3ed0c120da95787",
}


def act(owner: RecordingOwner, action: Action) -> object:
    client = owner.client
    if isinstance(action, bytes):
        return client.receive(action)
    if action == "cut off":
        return client.cut_off()
    if action == "lost":
        client.lost(b"connection lost")
    elif action == "quit" and client.is_idle:
        client.quit()
    elif action == "piece":
        client.send_piece(b"x")
    elif action == "end":
        client.end_content()
    elif action == "spoil":
        client.spoil_content(Reply(451, b"4.3.0", b"unreadable"))
    return None


def play(start: Start, sequence: tuple[Action, ...]) -> str:
    names = [b"r%d@b.example" % number for number in range(start.recipients)]
    letters = [Letter(name, names, None if start.is_streamed else b"Hello\r\n") for name in "ABC"]
    owner = PhaseRecorder(letters, max_pipeline=start.max_pipeline, pipelining=start.pipelining, needs_helo=start.needs_helo)
    for said in start.before:
        owner.client.receive(said)
    owner.take_written()
    client = owner.client
    heard: list[object] = []
    for action in sequence:
        given = act(owner, action)
        heard += [given, owner.take_written(), client.is_session, client.is_idle, client.sent is not None]
    return repr((heard, owner.fates, owner.texts, client.trust.known.name, client.opening.needs_helo))


def digest_of(start: Start) -> str:
    digest = hashlib.sha256()
    for count in range(1, start.length + 1):
        for sequence in itertools.product(start.actions, repeat=count):
            digest.update(play(start, sequence).encode())
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("name", STARTS)
def test_short_sequences_of_replies_have_the_commands_and_outcomes_that_they_had(name: str) -> None:
    assert digest_of(STARTS[name]) == DIGESTS[name]


if __name__ == "__main__":
    for name, start in STARTS.items():
        print(f'    "{name}": "{digest_of(start)}",')
