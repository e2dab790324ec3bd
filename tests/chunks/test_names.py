"""Unique names: parts, strategies and the one generator of a process."""

from __future__ import annotations

import re

import pytest

from mailismus.chunks.generator import NameGenerator, process_generator
from mailismus.chunks.names import InodeStrategy, PartStrategy, Stamp

NOW = 1_700_000_000.25


def generator() -> NameGenerator:
    return NameGenerator(lambda: 1, lambda size: bytes(size))


def test_names_differ_and_hold_no_slash_and_no_colon() -> None:
    names, stamps = PartStrategy("MPQ", b"a/b:c\x00d"), generator()
    made = [names.made_name(stamps.next(NOW)) for _ in range(100)]
    assert len(set(made)) == 100
    assert all(re.fullmatch(r"1700000000\.M250000P1Q\d+\.a\\057b\\072c_d", name) for name in made)


def test_parts_stand_in_the_order_of_the_strategy_and_the_inode_is_known_in_the_end() -> None:
    names, stamp = PartStrategy("RIPQM", b"h"), Stamp(NOW, 7, 3, b"\x01\xab")
    assert names.made_name(stamp) == "1700000000.R01abP7Q3M250000.h"
    assert names.final_name(stamp, 0x1F) == "1700000000.R01abI1fP7Q3M250000.h"


@pytest.mark.parametrize("parts", ["", "M", "MP", "MQ", "PI", "MPQQ", "MPQx", "IM"])
def test_parts_that_make_no_unique_name_are_refused(parts: str) -> None:
    with pytest.raises(ValueError, match=r"parts|tell"):
        PartStrategy(parts, b"h")


def test_an_empty_host_has_a_name() -> None:
    assert PartStrategy("MPQ", b"").made_name(Stamp(NOW, 1, 1, b"")).endswith(".localhost")


def test_the_queue_names_files_by_their_inode() -> None:
    names, stamps = InodeStrategy(), generator()
    assert names.final_name(stamps.next(NOW), 457) == "457"
    assert names.made_name(stamps.next(NOW)) != names.made_name(stamps.next(NOW))


def test_a_process_has_one_generator() -> None:
    assert process_generator() is process_generator()
    first, second = process_generator().next(NOW), process_generator().next(NOW)
    assert first.count != second.count
    assert first.random != second.random
