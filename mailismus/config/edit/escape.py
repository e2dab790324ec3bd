"""Values as XML writes them: in text, in a CDATA section, in an attribute. Pure.

*Rules*: as little is escaped as XML asks for, so that what was written by hand and set again is the same.
"""

from __future__ import annotations

import re

from mailismus.config.edit.path import PathError

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML can't hold, escaped neither (XML 1.0 2.2)."""


def check_value(value: str) -> None:
    """Whether XML can hold this value. Raises `PathError`."""
    found = _NO_XML.search(value)
    if found is not None:
        raise PathError(f"the value has a character that XML does not have, U+{ord(found[0]):04X}: write it without")


def escape_text(value: str, line_end: str) -> str:
    """As the text of an element. `line_end`: that of the file."""
    escaped = value.replace("&", "&amp;").replace("<", "&lt;").replace("]]>", "]]&gt;")
    return escaped.replace("\r", "&#13;").replace("\n", line_end)


def escape_cdata(value: str, line_end: str) -> str:
    """As the inside of a CDATA section; its end is written in two sections."""
    return value.replace("]]>", "]]]]><![CDATA[>").replace("\r", " ").replace("\n", line_end)


def escape_attribute(value: str, quote: str) -> str:
    """As the inside of an attribute between two of these quotes."""
    escaped = value.replace("&", "&amp;").replace("<", "&lt;").replace(quote, "&quot;" if quote == '"' else "&apos;")
    return escaped.replace("\t", "&#9;").replace("\n", "&#10;").replace("\r", "&#13;")
