"""Marks of acts in the words of a recipient: the last reply of what an act bounced."""

from __future__ import annotations

import pytest

from mailismus.mail.attempts import LONGEST, TRIES, attempts_of
from mailismus.mail.reply import MAX_TEXT, Reply
from mailismus.mail.words import LONGEST_WORDS, check_recipient_words, decode_words, encode_words
from mailismus.queue.acts.marking import before, marked, marked_with_reply, reply_before
from mailismus.queue.interface import Area, Entry

HOST = b"mx,1%.example[192.0.2.1]:25"
FULL = Reply(452, b"4.2.2", b"mailbox full, sorry, 100% of it = \xff")
BY_ACT = Reply(554, b"5.7.0", b"returned by the administrator: spam")


def deferred(reply: Reply | None, words: bytes | None = None) -> Entry:
    """An entry that waits."""
    return Entry(1, b"a@b.example", Area.DEFERRED, 5000.0, 1, reply, HOST if reply else b"-", words)


def bounced(entry: Entry) -> Entry:
    """The entry as an act left it in bounces."""
    words = marked_with_reply(entry, 7)
    check_recipient_words(words)
    return Entry(1, entry.recipient, Area.BOUNCES, 9000.0, 1, BY_ACT, b"-", words)


@pytest.mark.parametrize("reply", [FULL, Reply(250, b"", b""), None])
def test_a_bounced_entry_keeps_its_last_reply(reply: Reply | None) -> None:
    entry = deferred(reply, b"zz=1")
    found = bounced(entry)
    assert reply_before(found) == (reply, entry.host)
    assert before(found, 1.0) == (Area.DEFERRED, 5000.0, b"zz=1")


def test_what_is_deleted_behind_it_keeps_it_for_both_undoings() -> None:
    found = bounced(deferred(FULL))
    deleted = Entry(1, found.recipient, Area.DELETED, 9999.0, 1, BY_ACT, b"-", marked(found, 8))
    area, _, words = before(deleted, 1.0)
    assert area is Area.BOUNCES
    assert words == found.words


def test_a_text_without_room_is_cut_and_the_attempts_stay() -> None:
    history = b"1,1700000000,d60,,mx.example,452,4.2.2," + b"x" * (LONGEST - 60)
    entry = deferred(Reply(452, b"4.2.2", b"y" * MAX_TEXT), encode_words({TRIES: history}))
    found = bounced(entry)
    reply, host = reply_before(found)
    assert reply is not None
    assert (reply[:2], host) == (FULL[:2], HOST)
    assert reply.text == b"y" * 297 + b"..."
    assert attempts_of(found.words) == attempts_of(entry.words) != ()


def test_where_there_is_room_for_no_text_the_rest_of_the_reply_stays() -> None:
    entry = deferred(Reply(452, b"4.2.2", b"y" * MAX_TEXT), b"zz=" + b"1" * (LONGEST_WORDS - 150))
    reply, host = reply_before(bounced(entry))
    assert (reply, host) == (Reply(452, b"4.2.2", b""), HOST)


def test_where_there_is_no_room_at_all_the_entry_is_bounced_without_it() -> None:
    entry = deferred(FULL, b"zz=" + b"1" * (LONGEST_WORDS - 40))
    found = bounced(entry)
    assert decode_words(found.words).keys() == {b"act", b"was", b"zz"}
    assert reply_before(found) == (BY_ACT, b"-")


@pytest.mark.parametrize("said", [b"", b"452", b"4x2,,,", b"452,4.2.2"])
def test_another_form_is_no_reply(said: bytes) -> None:
    entry = Entry(1, b"a@b.example", Area.BOUNCES, 1.0, 1, BY_ACT, b"h", encode_words({b"said": said}))
    assert reply_before(entry) == ((None, b"-") if not said else (BY_ACT, b"h"))
