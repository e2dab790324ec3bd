"""Entries that are out for delivery and do not move: the running server says so, and why."""

from __future__ import annotations

import json

import attrs
import pytest

from mailismus.admin.model.noted import NotedEntry
from mailismus.admin.protocol.wire import WireError, decode, decode_message, encode, encode_message
from mailismus.admin.render.listing import reason_of
from mailismus.admin.render.message import entry_lines
from mailismus.mail.ids import QueueId
from mailismus.queue.waiting import Waiting
from tests.admin.samples import Told, deferred, incoming, message
from tests.admin.worlds import Running, World

NOTE = Waiting("maildir", b"in delivery; the maildir of \xffjoe has not answered for 72 s")
ONE = message(1, deferred(1), incoming(2), incoming(3))


def test_the_note_of_an_entry_comes_through() -> None:
    stuck = {QueueId(ONE.spool_id, 2): NOTE, QueueId(message(2).spool_id, 1): Waiting("disk", b"of another message")}
    first, second, third = decode_message(decode(encode_message(ONE, stuck))).entries
    assert isinstance(second, NotedEntry)
    assert (reason_of(second), second.hold) == (NOTE.sentence, "maildir")
    assert NotedEntry.of(incoming(2), NOTE) == second
    assert [first, third] == [deferred(1), incoming(3)]


def test_the_words_of_an_entry_stay_beside_its_note() -> None:
    entry = attrs.evolve(incoming(2), words=b"a=1")
    stuck = NotedEntry.of(entry, NOTE)
    assert (stuck.words, stuck.note) == (b"a=1", NOTE.sentence)


def test_a_message_without_such_entries_is_written_as_ever() -> None:
    assert encode_message(ONE, {QueueId(message(2).spool_id, 1): NOTE}) == encode_message(ONE)


@pytest.mark.parametrize("notes", [[], "text", {"2": 5}, {"2": None, "1": []}])
def test_notes_that_are_none_are_refused(notes: object) -> None:
    with pytest.raises(WireError):
        decode_message(decode(encode({**decode(encode_message(ONE)), "stuck": notes})))


def test_the_commands_show_it(world: World, running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    spool_id = running.put(b"a@home.example", b"b@home.example")
    running.queue.on_explain(lambda: Told({QueueId(spool_id, 2): NOTE}))
    assert world.run("queue", "list") == 0
    out = capsys.readouterr().out
    assert out.count("not tried yet") == 1
    assert "in delivery; the maildir of \\xffjoe has not answered for 72 s)" in out
    assert world.run("queue", "list", "--json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    reasons = [recipient["delay_reason"] for recipient in json.loads(line)["recipients"]]
    assert reasons == ["not tried yet", "in delivery; the maildir of \\xffjoe has not answered for 72 s"]


def test_show_tells_it_besides_the_last_reply() -> None:
    lines = list(entry_lines(ONE, NotedEntry.of(deferred(1), Waiting("maildir", b"in delivery; it hangs"))))
    assert "last reply:   451 4.3.0 come back later" in lines
    assert lines[-1] == "now:          in delivery; it hangs"
