"""Decisions: each page has its date, status and alternatives, and a row in the index that says the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))
_STATED = re.compile(
    r"# (?P<number>\d+)\. (?P<title>.+)\n\nDate: (?P<date>\d{4}-\d\d-\d\d)\. "
    r"Status: (?P<status>accepted|superseded by \[.+?\]\(.+?\))\."
)


def complaints(name: str, text: str, index: str) -> list[str]:
    """What a page, or its row in the index, lacks."""
    stated = _STATED.match(text)
    if stated is None:
        return ["does not begin with number, title, date and status"]
    found = []
    if int(name[:4]) != int(stated["number"]):
        found.append("has another number than its name")
    if re.search(r"^(## )?Alternatives( considered)?:?$", text, re.MULTILINE) is None:
        found.append("has no alternatives")
    if f"| {stated['number']} | [{stated['title']}]({name}) | {stated['date']} | {stated['status']} |" not in index:
        found.append("has no row in the index that says the same")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem[:4])
def test_a_decision_states_what_the_index_says(page: Path) -> None:
    text = page.read_text()
    assert complaints(page.name, text, (FOLDER / "README.md").read_text()) == []


def test_numbers_have_no_gap() -> None:
    assert [int(page.name[:4]) for page in PAGES] == list(range(1, len(PAGES) + 1))


def test_what_a_decision_lacks_is_told() -> None:
    good = "# 2. Two\n\nDate: 2026-11-21. Status: accepted. More.\n\n## Alternatives considered\n\n- One.\n"
    row = "| 2 | [Two](0002-two.md) | 2026-11-21 | accepted |\n"
    assert complaints("0002-two.md", good, row) == []
    assert complaints("0002-two.md", good.replace("accepted", "superseded by [3](0003.md)"), row) != []
    assert complaints("0002-two.md", good, row.replace("-21", "-22")) == ["has no row in the index that says the same"]
    assert complaints("0003-two.md", good, row)[0] == "has another number than its name"
    assert complaints("0002-two.md", good.replace("Alternatives", "Others"), row) == ["has no alternatives"]
    assert complaints("0002-two.md", "# 2. Two\n\nText.", row) == ["does not begin with number, title, date and status"]
