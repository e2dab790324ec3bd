"""Changing one element of a text: only its bytes change, and taking it out again gives the same text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mailismus.config.edit.change import is_written, set_value, set_values, unset
from mailismus.config.edit.path import Path, PathError, all_paths, parse_path
from mailismus.config.generate.sample import write_sample
from mailismus.config.read.document import Element, parse
from mailismus.config.read.load import load_tree
from mailismus.config.read.source import Tag, scan
from mailismus.config.table.words import Form
from tests.config.corpus import GOOD, in_deliver, in_listeners, in_queue

VALUE = "a \"b\" & <c> 'd' ]]> ü"
FILE = str(FilePath(__file__).parents[2] / "config" / "mailismus.xml")


def as_it_is(text: str) -> str:
    return text


def with_crlf(text: str) -> str:
    return re.sub(r"\r?\n", "\r\n", text)


def with_cdata(text: str) -> str:
    return re.sub(r"(<([a-zA-Z_]+)[^<>/]*>)\s*([^<>\s][^<>]*?)\s*(</\2>)", r"\1 <![CDATA[\3]]>\n\4", text)


def with_long_tags(text: str) -> str:
    return re.sub(r"<([a-zA-Z_]+)((?: [a-z]+=\"[^\"]*\")*)(/?)>", r"<\1\n  \2\n\n \3>", re.sub(r"<!--.*?-->", "", text))


def with_lines(text: str) -> str:
    """Each element on a line of its own, indented with tabs."""
    depth, found = 0, []
    for piece in re.findall(r"<!--.*?-->|<[^>]*>[^<]*</|<[^>]*>|[^<]+", text, re.DOTALL):
        if piece.endswith("</"):
            found.append(f"\n{chr(9) * depth}{piece}")
        elif not piece.startswith("<"):
            found.append(piece.strip())
        elif re.match(r"<[?!]", piece):
            continue
        else:
            depth -= piece.startswith("</")
            found.append(f"\n{chr(9) * depth}{piece}")
            depth += not piece.startswith("</") and not piece.endswith("/>")
    return "".join(found).replace("</\n", "</").lstrip() + "\n"


def with_comments(text: str) -> str:
    return re.sub(r"(<[a-zA-Z_]+[^<>]*>)", r"\1<!-- > \1 -->", re.sub(r"<!--.*?-->", "", text))


STYLES: list[Callable[[str], str]] = [as_it_is, with_crlf, with_cdata, with_long_tags, with_comments]
FILES = {**GOOD, "sample": write_sample()}


def split_lines(text: str) -> str:
    """Elements on lines of their own, where the corpus has one line."""
    return re.sub(r"(?<=>)(?=<[a-z/])", "\n  ", text)


def read_value(text: str, path: Path) -> str | None:
    """What a parser finds at a path, of which there may be several: the last."""
    element: Element | None = parse(text.encode(), FILE)
    names = [step.block.name for step in path.steps]
    numbers = [step.number for step in path.steps]
    setting = path.setting
    assert setting is not None
    if setting.form is Form.ELEMENT or setting.of:
        names.append(setting.of or setting.name)
        numbers.append(0)
    for name, number in zip(names, numbers, strict=True):
        assert element is not None
        children = [child for child in element.children if child.name == name]
        element = children[(number or len(children)) - 1] if children else None
    assert element is not None
    return element.attributes.get(setting.name) if setting.form is Form.ATTRIBUTE else element.text


def difference(old: str, new: str) -> tuple[str, str, int]:
    """What stands in one and in the other between the same beginning and end, and where that begins."""
    begin = next((n for n, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new)))
    end = 0
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    return old[begin : len(old) - end], new[begin : len(new) - end], begin


def paths_of(text: str) -> Iterator[Path]:
    for value in load_tree(parse(text.encode(), FILE), FILE, "mx.example.net", None).effective:
        yield parse_path(value.path)


def raw_value(text: str, path: Path) -> str:
    value = read_value(text, path)
    assert value is not None
    return value


@pytest.mark.parametrize("style", [*STYLES, split_lines], ids=lambda style: style.__name__)
@pytest.mark.parametrize("name", FILES)
def test_every_path_set_and_set_back_or_unset_gives_the_same_text(name: str, style: Callable[[str], str]) -> None:
    text = style(FILES[name])
    top = scan(text)
    assert top is not None
    for path in paths_of(FILES[name]):
        was_written = is_written(text, path)
        changed = set_value(text, path, VALUE)
        assert read_value(changed, path) == VALUE, path
        old, _, begin = difference(text, changed)
        if was_written:
            former = raw_value(text, path).replace("\r\n", "\n")
            assert set_value(changed, path, former) == text, path
            assert any(tag.begin <= begin and begin + len(old) <= tag.end for tag in innermost(top)), path
        else:
            assert unset(changed, path) == text, path
            assert old in ("", "/", "/>"), path


def innermost(top: Tag) -> list[Tag]:
    """Elements without elements, and start tags of the others."""
    return [tag for tag in top.in_order() if not tag.children or tag.attributes]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.__name__)
@pytest.mark.parametrize("name", FILES)
def test_what_is_unset_is_gone_and_nothing_else(name: str, style: Callable[[str], str]) -> None:
    text = style(FILES[name])
    for path in paths_of(FILES[name]):
        if not is_written(text, path):
            assert unset(text, path) == text
            continue
        changed = unset(text, path)
        assert not is_written(changed, path)
        old, new, _ = difference(text, changed)
        assert new.strip(" \t\r\n") in ("", "/", "/>"), path
        kept = re.findall("<!--.*?-->", changed, re.DOTALL)
        assert all(comment in kept for comment in re.findall("<!--.*?-->", text, re.DOTALL) if comment not in old), path
        parse(changed.encode(), FILE)


@pytest.mark.parametrize("name", ["empty", "empty blocks", "sample", "two listeners", "relays", "audit"])
@pytest.mark.parametrize("path", list(all_paths()))
def test_every_setting_of_the_table_can_be_set_and_unset(name: str, path: str) -> None:
    for text in (FILES[name], with_lines(FILES[name])):
        one_more = re.sub(r"(listener|relay)/", r"\1[+]/", path) if name in ("two listeners", "relays") else path
        where = parse_path(one_more)
        if is_written(text, where):
            continue
        changed = set_value(text, where, VALUE)
        assert read_value(changed, parse_path(path)) == VALUE
        number = len(re.findall(r"<relay\b" if "/relay/" in path else r"<listener\b", changed))
        assert unset(changed, parse_path(one_more.replace("[+]", f"[{number}]"))) == text


BLOCKS = ["", "<queue/>", "<queue></queue>", "<queue >\n </queue>", "<queue> </queue>", "<queue>\n  </queue>", "<queue />"]
PLACES = [
    "{}",
    "\n{}",
    "\n  {}\n",
    "<submit/>{}",
    "\n  <submit/>\n  {}",
    "\n<submit/> <!-- c -->\n{}\n<deliver/>",
    "<!-- c -->{}",
]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "path", ["mta/queue/minfree", "mta/queue/@provider", "mta/queue/journal/maxage", "mta/deliver/dns/@timeout"]
)
def test_whatever_a_block_was_before_it_is_again(block: str, place: str, path: str) -> None:
    text = f"<mailserver>\n<mta>{place.format(block)}</mta></mailserver>"
    assert unset(set_value(text, parse_path(path), "1"), parse_path(path)) == text


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_several_settings_can_be_taken_back_in_the_opposite_order(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(list(FILES.values())))
    chosen = data.draw(st.lists(st.sampled_from(list(all_paths())), min_size=2, max_size=4, unique=True))
    paths = [
        parse_path(path)
        for path in chosen
        if "/listener/" not in path and "/relay/" not in path and "/destination/" not in path
    ]
    texts = [text]
    for path in paths:
        assume(not is_written(texts[-1], path))
        texts.append(set_value(texts[-1], path, "1"))
    for path, before in zip(reversed(paths), reversed(texts[:-1]), strict=True):
        text = unset(texts.pop(), path)
        assert text == before


def test_an_element_stands_where_the_table_has_it_indented_as_its_neighbours() -> None:
    text = (
        "<mailserver>\n    <mta>\n        <queue>\n            <rootpath>q</rootpath> <!-- here -->\n"
        "            <minfree>0</minfree>\n        </queue>\n    </mta>\n</mailserver>\n"
    )
    changed = set_value(text, parse_path("mta/queue/retry_maxtime"), "1h")
    assert difference(text, changed)[:2] == ("", "retry_maxtime>1h</retry_maxtime>\n            <")
    assert "<!-- here -->\n            <retry_maxtime>1h</retry_maxtime>\n            <minfree>" in changed
    changed = set_value(text, parse_path("mta/queue/journal/maxage"), "0")
    assert (
        "</minfree>\n            <journal>\n                <maxage>0</maxage>\n            </journal>\n        </queue>"
    ) in changed
    changed = set_value(text, parse_path("application/stop_timeout"), "1s")
    assert (
        "<mailserver>\n    <application>\n        <stop_timeout>1s</stop_timeout>\n    </application>\n    <mta>" in changed
    )


def test_lines_end_as_in_the_file() -> None:
    text = "<mailserver>\r\n  <admin/>\r\n</mailserver>"
    assert "\n" not in set_value(text, parse_path("mta/queue/minfree"), "0").replace("\r\n", "")


def test_comments_and_blanks_in_a_value_stay() -> None:
    text = in_queue("<minfree> <!-- a --> 1\n<![CDATA[0]]><!-- b --> </minfree>")
    assert "<minfree> <!-- a --> 5%\n<!-- b --> </minfree>" in set_value(text, parse_path("mta/queue/minfree"), "5%")


def test_a_listener_or_relay_more_has_the_next_number() -> None:
    text = in_deliver('<relays>\n  <relay address="a"/>\n</relays>')
    words = ["address=b", "destdomains=x.example,y.example"]
    changed = set_values(text, parse_path("mta/deliver/relays/relay[+]"), words)
    assert '"a"/>\n  <relay address="b" destdomains="x.example,y.example"/>\n</relays>' in changed
    assert unset(changed, parse_path("mta/deliver/relays/relay[2]")) == text
    assert unset(changed, parse_path("mta/deliver/relays/relay[1]")) == text.replace(
        '"a"', '"b" destdomains="x.example,y.example"'
    )


def test_a_relay_more_looks_the_same_by_its_address_or_as_a_block() -> None:
    text = in_deliver('<relays>\n  <relay address="a"/>\n</relays>')
    changed = set_values(text, parse_path("mta/deliver/relays/relay[+]/@address"), ["b"])
    assert changed == set_values(text, parse_path("mta/deliver/relays/relay[+]"), ["address=b"])
    assert '"a"/>\n  <relay address="b"/>\n</relays>' in changed
    assert unset(changed, parse_path("mta/deliver/relays/relay[2]")) == text


def test_a_block_takes_several_settings_at_once() -> None:
    path = parse_path("mta/submit/listeners/listener[+]")
    text = in_listeners("")
    changed = set_values(text, path, ["port=0", "server/maxrecips=5", "ssl/certificate=c", "ssl/@latent=N", "name=x"])
    ssl, server = '<ssl latent="N"><certificate>c</certificate></ssl>', "<server><maxrecips>5</maxrecips></server>"
    assert f'<listener name="x" port="0">{ssl}{server}</listener>' in changed.replace("> <", "><")
    assert unset(changed, parse_path("mta/submit/listeners/listener[1]")) == text


def test_the_items_of_a_list_are_joined_as_it_is_written() -> None:
    text = set_values("<mailserver/>", parse_path("mta/queue/retry_delays"), ["15m", "1h"])
    assert "<retry_delays>15m | 1h</retry_delays>" in text
    text = set_values("<mailserver/>", parse_path("mta/deliver/relays/relay/@destdomains"), ["a", "b"])
    assert 'destdomains="a,b"' in text


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", 'no setting ""'),
        ("mta/queue/minfre", "did you mean mta/queue/minfree?"),
        ("mta/queue/maxtime", "did you mean mta/queue/retry_maxtime?"),
        ("mta/queue/nosuch", 'no setting "mta/queue/nosuch": `mailismus config show` prints all'),
        ("queue", "no setting"),
        ("mta/queue[1]/minfree", "only one queue"),
        ("mta/deliver/relays/relay[0]/@address", "no setting"),
        ("mta//queue", "no setting"),
        ("mta/queue/", "is a block"),
        ("mta/queue", "is a block"),
        ("mta/deliver/relays/relay[3]/@address", "there are 2; write relay[+] for one more"),
        ("mta/deliver/relays/relay/@address", "write relay[1] to relay[2]"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path: str, words: str) -> None:
    text = in_deliver('<relays><relay address="a"/><relay address="b"/></relays>')
    with pytest.raises(PathError) as caught:
        set_values(text, parse_path(path), ["x"])
    assert words in str(caught.value)


@pytest.mark.parametrize("value", ["\x00", "a\x1bb", "\udc80", "\ufffe"])
def test_a_value_that_xml_can_not_hold_is_refused(value: str) -> None:
    with pytest.raises(PathError, match=r"a character that XML does not have, U\+"):
        set_value("<mailserver/>", parse_path("mta/queue/minfree"), value)


@pytest.mark.parametrize("value", ["a\tb\nc\rd", "]]>", "&amp;", "'\"", "&#10;"])
@pytest.mark.parametrize("path", ["mta/report/ndr_subject", "mta/deliver/relays/relay/@address"])
def test_every_character_of_a_value_comes_back(path: str, value: str) -> None:
    assert read_value(set_value("<mailserver/>", parse_path(path), value), parse_path(path)) == value


def test_two_elements_where_one_may_stand_are_left_to_the_user() -> None:
    text = in_queue("<minfree>0</minfree><minfree>1</minfree>")
    with pytest.raises(PathError, match=r"<minfree> stands 2 times in <queue>: leave one, by hand"):
        set_value(text, parse_path("mta/queue/minfree"), "1")
