"""The documents: no dead links, and a recipe for the service that fits its unit. Commands: `tests.start.test_manual`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
README = ROOT / "README.rst"
RUN = 12
"""Words in a row that two pages share by chance at most: names of columns, a line of the log."""


def slug(heading: str) -> str:
    """The anchor that a heading gets on a page of HTML."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: str) -> set[str]:
    text = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def is_dead(page: Path, link: str) -> bool:
    """Whether a link of a page leads to no file, or to no heading of it. Links to other sites are taken on trust."""
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return not link.startswith("https://") and not (
        target.exists() and (not anchor or anchor in anchors(target.read_text()))
    )


def dead_links(page: Path) -> Iterator[str]:
    """Dead links of a page of Markdown."""
    yield from (link for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()) if is_dead(page, link))


def dead_references(page: Path) -> Iterator[str]:
    """Dead links of a page of reStructuredText: `text <target>`_."""
    yield from (link for link in re.findall(r"`[^`<]+<([^`>\s]+)>`_", page.read_text()) if is_dead(page, link))


def dead_paths(text: str) -> list[str]:
    """What a text of the README names in quotes and is not in the tree."""
    found = re.findall(r"``((?:docs|config|systemd)/[\w./-]*|\.ci/\w+)``", text)
    return [path for path in found if not (ROOT / path).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert list(dead_links(page)) == []


def test_a_dead_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One: `two`\n```\n# no heading\n```\n[a](#one-two) [b](#no-heading) [c](page.md#x) [d](none.md) [e](page.md)"
    )
    assert list(dead_links(page)) == ["#no-heading", "page.md#x", "none.md"]


def test_every_link_of_the_readme_leads_somewhere(tmp_path: Path) -> None:
    assert list(dead_references(README)) == []
    page = tmp_path / "page.rst"
    page.write_text("`a <none.md>`_ `b <page.rst>`_ ``c <code>`` `d <page.md#no-heading>`_")
    (tmp_path / "page.md").write_text("# Heading")
    assert list(dead_references(page)) == ["none.md", "page.md#no-heading"]


def test_what_the_readme_names_is_there() -> None:
    text = README.read_text()
    assert dead_paths(text) == []
    assert dead_paths("``docs/none.md`` ``docs/formats/``") == ["docs/none.md"]


def test_the_readme_links_to_every_page_beside_the_formats() -> None:
    text = README.read_text()
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        assert f"<{page.relative_to(ROOT)}>`_" in text


def test_the_service_is_installed_where_its_unit_looks() -> None:
    unit = dict(re.findall(r"^(\w+)=(.*)$", (ROOT / "systemd" / "mailismus.service").read_text(), re.MULTILINE))
    recipe = (ROOT / "docs" / "cookbook.md").read_text().partition("## Run it as a service")[2].partition("\n## ")[0]
    program = unit["ExecStart"].split()
    environment = program[0].removesuffix("/bin/twistd")
    assert f"python3 -m venv {environment} && {environment}/bin/pip install ." in recipe
    assert f"mailismus config sample > {program[-1]}" in recipe
    for made in (
        f"useradd --system --home-dir /var/lib/{unit['StateDirectory']} --shell /usr/sbin/nologin {unit['User']}\n",
        f"-m {unit['StateDirectoryMode'][1:]} /var/lib/{unit['StateDirectory']}\n",
        f"-m {unit['LogsDirectoryMode'][1:]} /var/log/{unit['LogsDirectory']}\n",
        f"<var>/var/lib/{unit['StateDirectory']}</var>",
        f"<logs>/var/log/{unit['LogsDirectory']}</logs>",
    ):
        assert made in recipe


def runs(text: str, length: int) -> set[tuple[str, ...]]:
    """All runs of so many words."""
    words = [word.strip(".:") for word in re.findall(r"[\w`<>=@./:%-]+", text)]
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def test_nothing_is_told_both_in_the_reference_and_in_the_cookbook() -> None:
    reference, tasks = ((ROOT / "docs" / name).read_text() for name in ("operating.md", "cookbook.md"))
    assert runs(reference, RUN) & runs(tasks, RUN) == set()


def test_what_two_texts_share_is_seen() -> None:
    shared = "one two three four five six seven eight nine ten eleven twelve"
    assert len(runs(f"Before. {shared}.", RUN) & runs(f"{shared}, and behind", RUN)) == 1
    assert runs(f"Before. {shared}.", RUN) & runs(shared.replace("six", "6"), RUN) == set()
