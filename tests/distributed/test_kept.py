"""Contents in memory have a budget, and go with their messages."""

from __future__ import annotations

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.distributed.content.kept import LARGEST, KeptContents
from tests.contracts.bench import CONTENT
from tests.distributed.servers import Servers


def test_those_that_were_not_needed_for_the_longest_time_make_room() -> None:
    kept = KeptContents(3000)
    for number in range(3):
        kept.keep(SpoolId(number), bytes([number]) * 1000)
    assert kept.get(SpoolId(0)) is not None
    kept.keep(SpoolId(3), b"x" * 1000)
    assert [kept.has(SpoolId(number)) for number in range(4)] == [True, False, True, True]
    kept.keep(SpoolId(4), b"y" * 2500)
    assert [kept.has(SpoolId(number)) for number in range(5)] == [False] * 4 + [True]
    kept.forget(SpoolId(4))
    kept.keep(SpoolId(5), b"z" * 3000)
    assert kept.has(SpoolId(5))


def test_a_large_one_is_not_kept() -> None:
    kept = KeptContents(2 * LARGEST)
    kept.keep(SpoolId(1), b"x" * LARGEST)
    kept.keep(SpoolId(2), b"x" * (LARGEST + 1))
    assert [kept.has(SpoolId(number)) for number in (1, 2)] == [True, False]


def test_a_content_goes_with_its_message() -> None:
    servers = Servers()
    one = servers.start("one")
    spool_id = one.put()
    kept = one.shared.parts.looking._kept
    assert kept.get(spool_id) == CONTENT
    one.defer(one.take_ids(), one.now() + 5)
    assert kept.has(spool_id), "it may be tried here again"
    servers.advance(6)
    one.remove(one.take_all())
    assert not kept.has(spool_id)
