"""The manual of settings: every setting with its default, its sentence and an example, for people (pure).

*Rules*: written from the table alone, as `docs/settings.md` and as the page mailismus.xml(5). What has no default "none" by
nature shows its example; each entry says what the value may be and what it is when nothing is written.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

import attrs

from mailismus.config.generate import roff
from mailismus.config.table.root import MAILSERVER
from mailismus.config.table.words import Block, Form, Occurs, Setting, with_provider

PAGE = "mailismus.xml"
WIDTH = 120
"""Columns of the Markdown."""

_INTRODUCTION = (
    "The configuration of one mail server is one XML file. Without `--config` it is `./config/mailismus.xml`, or else "
    "`/etc/mailismus/mailismus.xml`. Order is free, and what is left out has its default; unknown elements and attributes "
    "are errors. `mailismus config check` says what is wrong, with file and line, `mailismus config show` what is in "
    "force and where it comes from, `mailismus config sample` prints a whole file."
)

VALUES = (
    ("booleans", "Y or N; also yes, no, true and false, in any case."),
    ("times", "1h30m, units d h m s ms, the larger first; a bare number is milliseconds."),
    ("sizes", "K M G of 1,000 and Ki Mi Gi of 1,024: 256K is 256,000 bytes."),
    ("lists", 'Items are separated by "|", in attributes of <relay>, <destination>, <rabbitmq> and <cassandra> by ",".'),
    ("networks", "IPv4 and IPv6: 192.0.2.1, 192.0.2.0/24, 192.168/16, 2001:db8::/32."),
    (
        "tokens",
        "%DIRTOP%, %DIRCONF%, %DIRVAR% and %DIRLOG% stand for the directories of <dirpaths>, %SYSNAME% for the name of this "
        "host.",
    ),
    ("no limit", "0, where the name begins with max."),
)


@attrs.frozen
class ManualEntry:
    """One setting. `path`: as `config show` has it; `title`: within its block; `default`: as in a file, or in words."""

    path: str
    title: str
    sentence: str
    takes: str
    default: str
    example: str


@attrs.frozen
class Section:
    """One block. `refused`: names that may not be written here, with the reason."""

    path: str
    sentence: str
    occurs: Occurs
    entries: tuple[ManualEntry, ...]
    refused: tuple[tuple[str, str], ...]


def read_table(block: Block = MAILSERVER, path: str = "") -> Iterator[Section]:
    """The table, block by block, each before those inside it."""
    entries = tuple(
        _entry(setting, block, path) for setting in block.content if isinstance(setting, Setting) and not setting.hidden
    )
    hidden = [setting.key for setting in block.content if isinstance(setting, Setting) and setting.hidden]
    refused = []
    for names, reason in (
        ((*hidden, *block.unbuilt), "not available in this version"),
        (block.original, "of the original, not here"),
    ):
        if names:
            refused.append((", ".join(_name(name) for name in names), reason))
    yield Section(path.rstrip("/"), with_provider(block.sentence, block), block.occurs, entries, tuple(refused))
    for item in block.content:
        if isinstance(item, Block):
            yield from read_table(item, f"{path}{item.name}/")


def write_markdown() -> str:
    """`docs/settings.md`."""
    return "".join(f"{line}\n" for line in _markdown())


def write_page() -> str:
    """The page mailismus.xml(5)."""
    return roff.join(_page())


def _entry(setting: Setting[object], block: Block, path: str) -> ManualEntry:
    kind = setting.kind
    bounds = "" if kind.is_number else _bounds(kind.lowest, kind.highest)
    default = "none; it must be written" if setting.default is None else setting.default or "none"
    title = setting.name if setting.form is Form.ELEMENT else setting.title + (f" of <{setting.of}>" if setting.of else "")
    sentence = with_provider(setting.sentence, setting)
    return ManualEntry(path + setting.key, title, sentence, kind.form + bounds, default, _example(setting, block))


def _bounds(lowest: str, highest: str) -> str:
    return f"; from {lowest} to {highest}" if lowest and highest else ""


def _example(setting: Setting[object], block: Block) -> str:
    """As it is written in the file."""
    value = setting.example or setting.sample or setting.default or ""
    if setting.form is Form.ELEMENT:
        return f"<{setting.name}>{escape(value)}</{setting.name}>"
    element = setting.of or block.name
    must = [item for item in block.attributes_of(setting.of) if item.default is None and item is not setting]
    attributes = [f"{item.name}={quoteattr(item.sample or item.example)}" for item in must]
    tag = " ".join([element, *attributes, f"{setting.name}={quoteattr(value)}"])
    owner = next((item for item in block.content if isinstance(item, Setting) and item.name == setting.of), None)
    if owner is None:
        return f"<{tag}/>" if not block.elements else f"<{tag}> ... </{element}>"
    return f"<{tag}>{escape(owner.example or owner.sample or owner.default or '')}</{element}>"


def _name(name: str) -> str:
    return f"attribute {name[1:]}" if name.startswith("@") else f"<{name}>"


def _often(section: Section) -> str:
    return {
        Occurs.ONCE: "",
        Occurs.OPTIONAL: " Its presence has a meaning.",
        Occurs.MANY: " It may stand several times.",
    }[section.occurs]


def _markdown() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield '<!-- Generated by "mailismus manual --markdown settings"; change the table, not this file. -->'
    yield ""
    yield from textwrap.wrap(_INTRODUCTION, WIDTH, break_on_hyphens=False)
    yield ""
    for name, text in VALUES:
        yield f"- **{name}**: {_quoted(text)}"
    sections = list(read_table())
    yield ""
    for section in sections[1:]:
        depth = "  " * section.path.count("/")
        yield f"{depth}- [{section.path}](#{_anchor(section.path)})"
    for section in sections[1:]:
        yield ""
        yield f"## {section.path}"
        yield ""
        yield section.sentence + _often(section)
        for entry in section.entries:
            yield ""
            yield f"### {entry.path}"
            yield ""
            yield _quoted(entry.sentence)
            yield ""
            yield f"- takes: {_quoted(entry.takes)}"
            yield f"- default: {_default(entry)}"
            yield f"- example: `{entry.example}`"
        for names, reason in section.refused:
            yield ""
            yield f"Refused as *{reason}*: {_quoted(names)}."


def _default(entry: ManualEntry) -> str:
    return entry.default if entry.default.startswith("none") else f"`{entry.default}`"


def _quoted(text: str) -> str:
    """Markdown takes <names> for its own."""
    return text.replace("<", "\\<").replace("*", "\\*")


def _anchor(path: str) -> str:
    return path.lower().replace("/", "").replace("@", "")


def _page() -> Iterator[str]:
    yield from roff.title(PAGE, 5, "configuration of the Mailismus mail queue server")
    yield from roff.heading("Description")
    yield from roff.paragraph(_INTRODUCTION)
    yield from roff.heading("Values")
    for name, text in VALUES:
        yield from roff.tagged(name, text)
    yield from roff.heading("Settings")
    for section in list(read_table())[1:]:
        yield from roff.subheading(section.path)
        yield from roff.paragraph(section.sentence + _often(section))
        for entry in section.entries:
            default = entry.default if entry.default.startswith("none") else f"`{entry.default}`"
            yield from roff.tagged(entry.title, entry.sentence)
            yield ".br"
            yield from roff.prose(f"Takes {entry.takes}.")
            yield ".br"
            yield from roff.prose(f"Default: {default}")
            yield ".br"
            yield from roff.prose(f"Example: `{entry.example}`")
        for names, reason in section.refused:
            yield from roff.paragraph(f"Refused as {reason}: {names}.")
    yield from roff.heading("Example")
    yield from roff.literal(EXAMPLE.splitlines())
    yield from roff.heading("See also")
    yield from roff.paragraph("`mailismus`(1)")


EXAMPLE = """\
<mailserver>
  <application><announcehost>mx.example.net</announcehost></application>
  <directory>
    <domains>example.net</domains>
    <users>alice | bob</users>
    <postmaster>alice</postmaster>
  </directory>
  <mta>
    <submit>
      <listeners>
        <listener port="25">
          <server><relay_clients>192.0.2.0/24</relay_clients></server>
        </listener>
      </listeners>
    </submit>
    <deliver>
      <relays><relay address="relay.example.org:25"/></relays>
    </deliver>
  </mta>
</mailserver>"""
