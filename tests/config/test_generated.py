"""What is made from the table: the shipped sample and the schema, and that the schema judges as the table does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from mailismus.config.generate.sample import write_sample
from mailismus.config.generate.schema import write_schema
from mailismus.config.read.document import parse
from mailismus.config.read.load import load, load_tree
from mailismus.config.table.kinds import ReadContext
from mailismus.config.table.root import MAILSERVER
from mailismus.config.table.words import Block, Setting
from mailismus.config.values.units import UnitError
from mailismus.errors import ConfigError
from tests.config.corpus import BROKEN, GOOD, Broken

CONFIG = Path(__file__).parents[2] / "config"
SCHEMA = etree.RelaxNG(etree.fromstring(write_schema().encode()))
PLACE = ReadContext(
    "/c", {"DIRTOP": "/t", "DIRCONF": "/t/c", "DIRVAR": "/t/v", "DIRLOG": "/t/l", "SYSNAME": "mx.example.net"}
)


def all_settings(block: Block) -> Iterator[tuple[Block, Setting[object]]]:
    for item in block.content:
        if isinstance(item, Setting):
            yield block, item
        else:
            yield from all_settings(item)


SETTINGS = list(all_settings(MAILSERVER))
SETTING_IDS = [f"{block.name}/{setting.key}" for block, setting in SETTINGS]


def is_valid(text: str) -> bool:
    return bool(SCHEMA.validate(etree.fromstring(text.encode())))


def test_the_shipped_sample_is_what_the_table_says() -> None:
    assert (CONFIG / "mailismus.xml").read_text() == write_sample(), (
        "write it anew: mailismus config sample > config/mailismus.xml"
    )


def test_the_shipped_schema_is_what_the_table_says() -> None:
    assert (CONFIG / "mailismus.rng").read_text() == write_schema(), (
        "write it anew: mailismus config schema > config/mailismus.rng"
    )


def test_the_sample_works_as_it_stands_on_this_host_alone() -> None:
    shipped = load(str(CONFIG / "mailismus.xml")).settings
    assert [(listener.interface, listener.port) for listener in shipped.listeners] == [("127.0.0.1", 2525)]
    assert shipped.directory.domains == {b"example.net"}
    assert shipped.directory.users == {b"alice"}
    assert shipped.message_store.userpath == str(CONFIG.parent / "var/ms")
    assert [(relay.address, relay.destdomains) for relay in shipped.deliver.relays] == [("127.0.0.1:8025", ())]


def test_the_sample_says_every_setting() -> None:
    sample = write_sample()
    for _block, setting in SETTINGS:
        assert setting.hidden or setting.sentence.removesuffix(".") in sample.replace("&lt;", "<").replace("&gt;", ">")


def test_apart_from_what_it_must_say_otherwise_the_sample_says_the_defaults() -> None:
    written = load_tree(
        parse(write_sample().encode(), "/s/config/mailismus.xml"), str(CONFIG / "mailismus.xml"), "mx.example.net", None
    )
    empty = load_tree(parse(b"<mailserver/>", "f"), str(CONFIG / "mailismus.xml"), "mx.example.net", None)
    defaults = {value.path: value.text for value in empty.effective}
    different = {value.path.rpartition("/")[2] for value in written.effective if defaults.get(value.path) != value.text}
    assert different == {
        "domains",
        "users",
        "postmaster",
        "@name",
        "@interface",
        "@port",
        "relay_clients",
        "@address",
        "@destdomains",
        "@senders",
        "@sendernets",
    }


def test_the_schema_takes_the_sample() -> None:
    assert SCHEMA.validate(etree.fromstring(write_sample().encode())), SCHEMA.error_log


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_the_schema_takes_what_the_table_takes(text: str) -> None:
    assert is_valid(text), SCHEMA.error_log


@pytest.mark.parametrize("broken", [broken for broken in BROKEN if broken.is_seen_by_schema], ids=lambda broken: broken.name)
def test_the_schema_refuses_what_it_can_see(broken: Broken) -> None:
    assert not is_valid(broken.text)


@pytest.mark.parametrize(("block", "setting"), SETTINGS, ids=SETTING_IDS)
def test_every_default_and_example_is_of_its_kind_and_read_as_shown(block: Block, setting: Setting[object]) -> None:
    for text in (setting.default, setting.sample, setting.example or None):
        if text is not None:
            value = setting.kind.parse(text, PLACE)
            assert setting.kind.parse(setting.kind.show(value), PLACE) == value


@pytest.mark.parametrize(("block", "setting"), SETTINGS, ids=SETTING_IDS)
def test_every_setting_has_a_sentence(block: Block, setting: Setting[object]) -> None:
    assert setting.sentence.endswith(".")
    assert setting.kind.form


PIECES = st.sampled_from(
    [
        *"0123459aKMGmshdiYyNn.:/%|,-_[] @",
        "00",
        "100ms",
        "15m",
        "Ki",
        "127.0.0.1",
        "::1",
        "/16",
        "%DIRVAR%",
        "%X%",
        "a.example",
        "ä",
        "|",
        "2%",
    ]
)


@pytest.mark.parametrize(("block", "setting"), SETTINGS, ids=SETTING_IDS)
@settings(max_examples=30)
@given(data=st.data())
def test_the_schema_takes_every_value_that_the_table_takes(
    block: Block, setting: Setting[object], data: st.DataObject
) -> None:
    text = "".join(data.draw(st.lists(PIECES, max_size=6))).strip()
    try:
        setting.kind.parse(text, PLACE)
    except UnitError:
        return
    element = etree.Element("x")
    if setting.key.startswith("@"):
        element.set(setting.name, text)
    else:
        etree.SubElement(element, setting.name).text = text
    schema = single_schema(setting)
    assert schema.validate(element), (text, schema.error_log)


_SINGLE: dict[int, etree.RelaxNG] = {}


def single_schema(setting: Setting[object]) -> etree.RelaxNG:
    """A schema of an element <x> with that setting alone, cut out of the whole."""
    if id(setting) not in _SINGLE:
        from mailismus.config.generate.schema import write_setting

        body = "\n".join(write_setting(setting))
        text = (
            '<element name="x" xmlns="http://relaxng.org/ns/structure/1.0" '
            'xmlns:a="http://relaxng.org/ns/compatibility/annotations/1.0" '
            f'datatypeLibrary="http://www.w3.org/2001/XMLSchema-datatypes">{body}</element>'
        )
        _SINGLE[id(setting)] = etree.RelaxNG(etree.fromstring(text))
    return _SINGLE[id(setting)]


def mutations() -> Iterator[str]:
    """The sample, once for each of its elements with that element renamed, doubled, emptied, or given an attribute."""
    top = etree.fromstring(write_sample().encode())
    count = len(list(top.iter(etree.Element)))
    for index in range(1, count):
        for change in ("rename", "double", "attribute", "text"):
            copy = etree.fromstring(write_sample().encode())
            element = list(copy.iter(etree.Element))[index]
            parent = element.getparent()
            assert parent is not None
            if change == "rename":
                element.tag = element.tag + "x"
            elif change == "double":
                parent.append(etree.fromstring(etree.tostring(element, with_tail=False)))
            elif change == "attribute":
                element.set("extra", "1")
            else:
                parent.text = "stray"
            yield etree.tostring(copy).decode()


def test_table_and_schema_judge_every_mutation_of_the_sample_alike() -> None:
    verdicts = set()
    for text in mutations():
        try:
            load_tree(parse(text.encode(), "f"), str(CONFIG / "mailismus.xml"), "mx.example.net", None)
        except ConfigError as error:
            takes = "share port" in error.text or "second default relay" in error.text or 'are called "SMTP"' in error.text
        else:
            takes = True
        assert takes == is_valid(text), text
        verdicts.add(takes)
    assert verdicts == {True, False}
