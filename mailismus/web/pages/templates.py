"""Templates by Jinja, and the files beside them. All are read when this module is imported, and none later.

*Rules*: whatever a template prints is made harmless first (`harmless`), then escaped; no template marks anything as safe.
So a text of a peer is text on the page. A name that a template does not get is an error.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from importlib.resources import files

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from mailismus.observe.text import shown

NAMES = ("base", "macros", "front", "day", "queue", "message", "trouble")
MOST_MARKS = 2
"""Combining marks on one letter that are shown as they are."""
_FILES = files(__package__) / "files"

STYLE, SCRIPT, ICON = ((_FILES / name).read_bytes() for name in ("style.css", "refresh.js", "icon.svg"))


def harmless(value: object) -> object:
    """A value on its way into a page: of a text only printable characters, as at a terminal, and not so many marks above one
    another that they reach other lines."""
    if not isinstance(value, str) or isinstance(value, Markup) or (value.isascii() and value.isprintable()):
        return value
    text = shown(value.encode("utf-8", "backslashreplace"))
    return text if text.isascii() else "".join(_without_piles(text))


def _without_piles(text: str) -> Iterator[str]:
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        if marks <= MOST_MARKS:
            yield character
        else:
            code = ord(character)
            yield f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_TEMPLATES = Environment(
    loader=DictLoader({f"{name}.html": (_FILES / f"{name}.html").read_text("utf-8") for name in NAMES}),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=harmless,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
for _name in NAMES:
    _TEMPLATES.get_template(f"{_name}.html")  # an error of a template ends the start


def render(name: str, values: Mapping[str, object]) -> bytes:
    """A page by its template."""
    return _TEMPLATES.get_template(f"{name}.html").render(values).encode("utf-8")
