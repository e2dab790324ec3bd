"""The manual of settings, and that what is shipped of it is what the table says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mailismus.config.generate.manual import EXAMPLE, ManualEntry, read_table, write_markdown, write_page
from mailismus.config.read.check import check_shape, convert
from mailismus.config.read.document import parse
from mailismus.config.read.load import load_tree
from mailismus.config.table.kinds import ReadContext
from mailismus.config.table.root import MAILSERVER
from mailismus.config.table.words import Block, Occurs, Setting
from tests.config.test_generated import SETTINGS

DOCS = Path(__file__).parents[2] / "docs"
ENTRIES = [entry for section in read_table() for entry in section.entries]


def test_the_shipped_settings_md_is_what_the_table_says() -> None:
    assert (DOCS / "settings.md").read_text() == write_markdown(), (
        "write it anew: mailismus manual settings --markdown > docs/settings.md"
    )


def test_the_shipped_page_is_what_the_table_says() -> None:
    assert (DOCS / "man" / "mailismus.xml.5").read_text() == write_page(), (
        "write it anew: mailismus manual settings > docs/man/mailismus.xml.5"
    )


def test_every_setting_is_there_once_with_its_default_sentence_and_example() -> None:
    assert len(ENTRIES) == len({entry.path for entry in ENTRIES}) == sum(not setting.hidden for _, setting in SETTINGS)
    text = write_markdown()
    for entry in ENTRIES:
        assert f"### {entry.path}\n" in text
        assert entry.default
        assert entry.example


def test_paths_are_those_of_config_show() -> None:
    file = "/s/config/mailismus.xml"
    shown = load_tree(parse(b"<mailserver/>", file), file, "mx.example.net", None).effective
    assert {value.path for value in shown} <= {entry.path for entry in ENTRIES}


def blocks_of(entry: ManualEntry) -> list[Block]:
    """The blocks around it, from the outermost, and the last part of its path: its key."""
    blocks = [MAILSERVER]
    for step in entry.path.split("/"):
        inner = next((item for item in blocks[-1].content if isinstance(item, Block) and item.name == step), None)
        if inner is None:
            break
        blocks.append(inner)
    return blocks


def wrapped(entry: ManualEntry) -> str:
    """The example as it stands in a whole file, with what must stand beside it."""
    blocks = blocks_of(entry)
    body = entry.example.replace(" ... ", "")
    if body.startswith(f"<{blocks[-1].name} "):  # an attribute of the block itself
        last = blocks.pop()
        body = body.replace("></", f">{_required_in(last, body)}</", 1)
    for inner in reversed(blocks):
        must = [item for item in inner.content if isinstance(item, Setting) and item.default is None]
        attributes = "".join(f' {item.name}="{item.sample}"' for item in must if item.key.startswith("@"))
        body = f"<{inner.name}{attributes}>{body}{_required_in(inner, body)}</{inner.name}>"
    return body


def _required_in(block: Block, body: str) -> str:
    """The elements without which the block is not whole, but for those that are there."""
    must = [item for item in block.content if isinstance(item, Setting) and item.default is None]
    names = [item.name for item in must if not item.key.startswith("@") and f"<{item.name}>" not in body]
    return "".join(f"<{name}>x</{name}>" for name in names)


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.path for entry in ENTRIES])
def test_every_example_is_read_as_that_setting(entry: ManualEntry) -> None:
    file = "/s/config/mailismus.xml"
    tokens = {"DIRTOP": "/t", "DIRCONF": "/t/c", "DIRVAR": "/t/v", "DIRLOG": "/t/l", "SYSNAME": "mx.example.net"}
    top = parse(wrapped(entry).encode(), file)
    check_shape(top, file)
    given = convert(MAILSERVER, top, ReadContext("/s/config", tokens), file)
    *_, last = blocks = blocks_of(entry)
    for block in blocks[1:]:
        given = given.one(block)
    key = entry.path.split("/", len(blocks) - 1)[-1]
    setting = next(item for item in last.content if isinstance(item, Setting) and item.key == key)
    assert given.is_written(setting)


def test_the_example_of_the_page_is_a_good_configuration(tmp_path: Path) -> None:
    file = str(tmp_path / "config" / "mailismus.xml")
    settings = load_tree(parse(EXAMPLE.encode(), file), file, "mx.example.net", None).settings
    assert settings.directory.users == {b"alice", b"bob"}
    assert max(map(len, EXAMPLE.splitlines())) <= 72


def test_a_block_says_how_often_and_what_is_refused() -> None:
    sections = {section.path: section for section in read_table()}
    assert sections["mta/deliver/relays/relay"].occurs is Occurs.MANY
    refused = sections["mta/submit/listeners/listener/server"].refused
    assert any("<greylist>" in names and reason == "of the original, not here" for names, reason in refused)
    refused = sections["directory"].refused
    assert any("<aliases>" in names and reason == "not available in this version" for names, reason in refused)


def test_no_line_of_the_page_begins_by_chance_with_a_command_of_roff() -> None:
    macros = {".TH", ".SH", ".SS", ".PP", ".TP", ".nf", ".fi", ".br", ".nh", ".ad", '.\\"'}
    lines = write_page().splitlines()
    assert {line.split()[0] for line in lines if line.startswith((".", "'"))} <= macros
    assert max(map(len, lines)) < 100


def test_nothing_of_this_installation_is_in_it() -> None:
    assert os.getcwd() not in write_page() + write_markdown()
