"""The page about fsck tells of every kind, in the words of the program."""

from __future__ import annotations

import io
from pathlib import Path

from mailismus.queue.providers.distributed.fsck.kinds import SharedFindingKind
from tests.fsck.damages import DAMAGES
from tests.fsck.table import log_kinds, write_kinds

PAGE = Path(__file__).parents[2] / "docs" / "fsck.md"


def test_the_page_tells_of_every_kind() -> None:
    out = io.StringIO()
    write_kinds(out)
    assert out.getvalue() in PAGE.read_text()


def test_the_page_tells_of_every_kind_of_a_log() -> None:
    out = io.StringIO()
    write_kinds(out, log_kinds())
    assert out.getvalue() in PAGE.read_text()


def test_the_page_tells_of_every_kind_of_a_queue_in_services() -> None:
    out = io.StringIO()
    write_kinds(out, SharedFindingKind)
    assert out.getvalue() in PAGE.read_text()


def test_the_page_tells_of_every_damage() -> None:
    page = PAGE.read_text()
    assert [damage.title for damage in DAMAGES if f"\n| {damage.title} |" not in page] == []
