"""The reference cache: bytes go when no live entry is left, never before, and in the end always."""

from __future__ import annotations

import time

import pytest

from mailismus.mail.ids import SpoolId
from mailismus.spool.references import ReferenceCache, Verdict

EPOCH = 1 << 32
FIRST_NEW = SpoolId(5 * EPOCH)


def new(number: int) -> SpoolId:
    return SpoolId(FIRST_NEW + number)


def old(number: int) -> SpoolId:
    return SpoolId(4 * EPOCH + number)


def complete(max_ids: int = 0, max_unsure: int = 100) -> ReferenceCache:
    cache = ReferenceCache(max_ids, FIRST_NEW, max_unsure)
    cache.complete()
    return cache


def scaned(cache: ReferenceCache, *lines: SpoolId) -> list[SpoolId]:
    scan = cache.begin_scan()
    for spool_id in lines:
        scan.saw_line(spool_id, 3)
    return scan.end()


# New messages


def test_the_last_drop_releases() -> None:
    cache = complete()
    cache.add(new(1), 3)
    assert [cache.drop(new(1)), cache.drop(new(1)), cache.drop(new(1))] == [Verdict.KEEP, Verdict.KEEP, Verdict.RELEASE]
    assert (len(cache), cache.scans) == (0, 0)


def test_several_entries_are_dropped_at_once() -> None:
    cache = complete()
    cache.add(new(1), 5)
    assert [cache.drop(new(1), 2), cache.drop(new(1), 3)] == [Verdict.KEEP, Verdict.RELEASE]


def test_what_is_released_or_never_heard_of_is_unsure() -> None:
    cache = complete()
    cache.add(new(1), 1)
    cache.drop(new(1))
    assert [cache.drop(new(1)), cache.drop(new(9)), cache.drop(old(1))] == [Verdict.UNSURE] * 3
    assert sorted(scaned(cache)) == [old(1), new(1), new(9)]


def test_more_drops_than_entries_never_release() -> None:
    cache = complete()
    cache.add(new(1), 2)
    assert [cache.drop(new(1), 3), cache.drop(new(1)), cache.drop(new(1))] == [Verdict.UNSURE] * 3
    assert scaned(cache) == [new(1)]
    assert len(cache) == 0


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_one_is_refused(count: int) -> None:
    cache = complete()
    with pytest.raises(ValueError, match="live entries more"):
        cache.add(new(1), count)
    cache.add(new(1), 1)
    with pytest.raises(ValueError, match="live entries less"):
        cache.drop(new(1), count)


def test_the_largest_exact_count_is_exact() -> None:
    cache = complete()
    cache.add(new(1), 65_534)
    assert [cache.drop(new(1), 65_533), cache.drop(new(1))] == [Verdict.KEEP, Verdict.RELEASE]


def test_a_count_that_overflows_is_unsure_and_never_wraps() -> None:
    cache = complete()
    cache.add(new(1), 65_535)
    cache.add(new(2), 65_534)
    cache.add(new(2), 1)
    cache.add(new(3), 1_000_000)
    for spool_id, count in ((new(1), 65_535), (new(2), 65_535), (new(3), 1_000_000)):
        assert cache.drop(spool_id, count - 1) is Verdict.UNSURE
        assert cache.drop(spool_id) is Verdict.UNSURE
    assert sorted(scaned(cache)) == [new(1), new(2), new(3)]
    assert len(cache) == 0


# What does not fit


def test_what_does_not_fit_is_unsure_and_what_is_counted_is_never_thrown_out() -> None:
    cache = complete(max_ids=2)
    for number in (1, 2, 3):
        cache.add(new(number), 2)
    assert len(cache) == 2
    assert [cache.drop(new(number)) for number in (1, 2, 3)] == [Verdict.KEEP, Verdict.KEEP, Verdict.UNSURE]
    assert scaned(cache, new(1), new(2), new(3)) == []
    assert [cache.drop(new(number)) for number in (1, 2, 3)] == [Verdict.RELEASE, Verdict.RELEASE, Verdict.UNSURE]
    assert scaned(cache) == [new(3)]


def test_what_did_not_fit_is_not_counted_when_there_is_room_again() -> None:
    cache = complete(max_ids=1)
    cache.add(new(1), 1)
    cache.add(new(2), 2)
    cache.drop(new(1))
    cache.add(new(2), 1)
    assert [cache.drop(new(2)), cache.drop(new(2)), cache.drop(new(2))] == [Verdict.UNSURE] * 3
    cache.add(new(3), 1)
    assert cache.drop(new(3)) is Verdict.RELEASE


def test_what_was_forgotten_is_not_counted_again() -> None:
    cache = complete()
    cache.add(new(1), 2)
    cache.forget(new(1))
    cache.add(new(1), 1)
    assert cache.drop(new(1)) is Verdict.UNSURE
    cache.forget(new(1))
    assert scaned(cache) == []


def test_what_was_found_at_start_is_not_counted_by_what_comes_later() -> None:
    cache = complete()
    cache.add(old(1), 1)
    assert cache.drop(old(1)) is Verdict.UNSURE


# What was found at start


def test_until_the_scan_at_start_is_over_what_was_found_is_unsure_and_what_is_new_is_exact() -> None:
    cache = ReferenceCache(0, FIRST_NEW)
    cache.add(new(1), 1)
    assert (cache.drop(old(1)), cache.drop(new(1))) == (Verdict.UNSURE, Verdict.RELEASE)
    scan = cache.begin_scan()
    cache.add(new(2), 1)
    scan.saw_line(old(2), 2)
    assert (cache.drop(old(2)), cache.drop(new(2))) == (Verdict.UNSURE, Verdict.RELEASE)
    assert (cache.is_complete, cache.needs_scan) == (False, True)
    assert scan.end() == [old(1)]
    assert (cache.is_complete, cache.needs_scan) == (True, True)


def test_the_scan_at_start_counts() -> None:
    cache = ReferenceCache(0, FIRST_NEW)
    assert scaned(cache, old(1), old(2), old(1), new(1)) == []
    assert (cache.is_complete, cache.needs_scan, len(cache)) == (True, False, 2)
    assert [cache.drop(old(1)), cache.drop(old(1)), cache.drop(old(2))] == [Verdict.KEEP, Verdict.RELEASE, Verdict.RELEASE]


def test_a_message_with_one_recipient_takes_no_room() -> None:
    cache = ReferenceCache(0, FIRST_NEW)
    scan = cache.begin_scan()
    scan.saw_line(old(1), 1)
    scan.count_line(old(1), 1)
    assert scan.end() == []
    assert len(cache) == 0


def test_the_limit_never_leaves_a_message_partly_counted() -> None:
    """One that was left out stays so, even if there is room again when the next of its lines is seen."""
    cache = ReferenceCache(1, FIRST_NEW)
    cache.add(new(1), 1)
    scan = cache.begin_scan()
    scan.saw_line(old(1), 2)
    cache.drop(new(1))
    scan.saw_line(old(1), 2)
    scan.end()
    assert (len(cache), cache.drop(old(1))) == (0, Verdict.UNSURE)


def test_the_scan_at_start_leaves_no_trust_in_what_was_settled_meanwhile() -> None:
    """Three lines: one settled before the scan comes to it, one seen, one seen later."""
    cache = ReferenceCache(0, FIRST_NEW)
    scan = cache.begin_scan()
    assert cache.drop(old(1)) is Verdict.UNSURE
    scan.saw_line(old(1), 3)
    scan.saw_line(old(1), 3)
    assert scan.end() == []
    assert [cache.drop(old(1)), cache.drop(old(1))] == [Verdict.UNSURE] * 2
    assert scaned(cache) == [old(1)]
    assert len(cache) == 0


def test_the_scan_at_start_leaves_no_trust_in_what_was_moved_meanwhile() -> None:
    """Of two lines, one moves to where the scan has been: only the other one is seen."""
    cache = ReferenceCache(0, FIRST_NEW)
    scan = cache.begin_scan()
    scan.count_line(old(1), 2)
    scan.saw_line(old(1), 2)
    scan.end()
    assert cache.drop(old(1)) is Verdict.UNSURE


def test_a_scan_at_start_that_was_cut_short_never_was() -> None:
    cache = ReferenceCache(0, FIRST_NEW)
    scan = cache.begin_scan()
    scan.saw_line(old(1), 2)
    cache.drop(old(2))
    scan.abandon()
    assert (cache.is_complete, len(cache), cache.scans, cache.scan) == (False, 0, 0, None)
    assert scaned(cache, old(1), old(1)) == [old(2)]
    assert [cache.drop(old(1)), cache.drop(old(1))] == [Verdict.KEEP, Verdict.RELEASE]


def test_completing_while_the_scan_at_start_runs_is_refused() -> None:
    cache = ReferenceCache(0, FIRST_NEW)
    cache.begin_scan()
    with pytest.raises(ValueError, match="not over"):
        cache.complete()


# Scans


def test_a_scan_releases_what_it_saw_no_line_of() -> None:
    cache = complete()
    for number in (1, 2, 3):
        cache.drop(old(number))
    assert sorted(scaned(cache, old(2), old(7))) == [old(1), old(3)]
    assert (cache.scans, cache.needs_scan, len(cache.unsure)) == (1, False, 0)


def test_what_was_settled_during_a_scan_waits_for_the_next() -> None:
    cache = complete()
    cache.drop(old(1))
    scan = cache.begin_scan()
    cache.drop(old(1))
    cache.drop(old(2))
    assert scan.end() == []
    assert sorted(scaned(cache)) == [old(1), old(2)]


def test_what_was_seen_and_then_settled_waits_for_the_next_scan() -> None:
    cache = complete()
    cache.drop(old(1))
    scan = cache.begin_scan()
    scan.saw_line(old(1), 2)
    cache.drop(old(1))
    assert scan.end() == []
    assert scaned(cache) == [old(1)]


def test_what_got_a_line_during_a_scan_waits_for_the_next() -> None:
    cache = complete()
    cache.drop(old(1))
    scan = cache.begin_scan()
    scan.count_line(old(1), 2)
    assert scan.end() == []
    assert (cache.needs_scan, scaned(cache, old(1)), cache.needs_scan) == (True, [], False)


def test_what_is_added_during_a_scan_waits_for_the_next() -> None:
    cache = complete(max_ids=1)
    cache.add(new(1), 1)
    cache.add(new(2), 2)
    cache.drop(new(2))
    scan = cache.begin_scan()
    cache.add(new(2), 1)
    assert scan.end() == []
    assert new(2) in cache.unsure


def test_a_scan_that_was_cut_short_releases_nothing() -> None:
    cache = complete()
    cache.drop(old(1))
    scan = cache.begin_scan()
    cache.drop(old(2))
    scan.abandon()
    assert (cache.scans, len(cache.unsure)) == (0, 2)
    assert sorted(scaned(cache)) == [old(1), old(2)]


def test_a_scan_releases_nothing_that_is_counted_exactly() -> None:
    """Asked about by mistake, or its lines could not be read."""
    cache = complete()
    cache.add(new(1), 2)
    cache.unsure.add(new(1))
    assert scaned(cache) == []
    assert [cache.drop(new(1)), cache.drop(new(1))] == [Verdict.KEEP, Verdict.RELEASE]


def test_there_is_one_scan_at_a_time_and_it_ends_once() -> None:
    cache = complete()
    scan = cache.begin_scan()
    with pytest.raises(ValueError, match="runs already"):
        cache.begin_scan()
    scan.end()
    for act in (scan.end, scan.abandon):
        with pytest.raises(ValueError, match="is over"):
            act()
    assert cache.scans == 1


def test_unsure_ids_are_bounded_and_what_found_no_room_is_counted() -> None:
    cache = complete(max_unsure=2)
    for number in (1, 2, 3, 3, 1):
        assert cache.drop(old(number)) is Verdict.UNSURE
    assert (len(cache.unsure), cache.unsure.is_full, cache.unsure.missed) == (2, True, 2)
    scan = cache.begin_scan()
    assert not cache.unsure.add(old(4))
    assert cache.unsure.add(old(1))
    scan.end()
    assert (cache.unsure.is_full, cache.unsure.add(old(3)), cache.unsure.missed) == (False, True, 3)
    assert sorted(scaned(cache)) == [old(1), old(3)]


def test_a_message_takes_at_most_32_bytes() -> None:
    """Memory is judged, speed is printed."""
    count = 250_000
    cache = ReferenceCache(count, FIRST_NEW)
    scan = cache.begin_scan()
    began = time.perf_counter()
    for number in range(count // 2):
        scan.saw_line(old(number), 2)
        scan.saw_line(old(number), 2)
    saw_ns = (time.perf_counter() - began) / count * 1e9
    scan.end()
    began = time.perf_counter()
    for number in range(count // 2):
        cache.add(new(number), 2)
    add_ns = (time.perf_counter() - began) / (count // 2) * 1e9
    assert len(cache) == count
    size_bytes = cache.size_bytes
    began = time.perf_counter()
    for number in range(25_000):
        cache.drop(new(number))
        cache.drop(new(number))
    drop_ns = (time.perf_counter() - began) / 50_000 * 1e9
    print(f"{size_bytes / count:.1f} bytes an id; saw {saw_ns:.0f} ns, add {add_ns:.0f}, drop {drop_ns:.0f}")
    assert size_bytes <= 32 * count
