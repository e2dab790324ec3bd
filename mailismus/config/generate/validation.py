"""The schema applied to a file: a second opinion on what the table has accepted.

*Rules*: it is asked only about a file that loads; our own messages are better where both have one. A finding means that
table and schema disagree: editors will mark this place.
"""

from __future__ import annotations

import attrs
from lxml import etree

from mailismus.config.generate.schema import write_schema
from mailismus.config.read.document import MAX_TREE_LINE


@attrs.frozen
class SchemaFinding:
    """What the schema says of a file. `line`: where the innermost element begins that it refuses, 0: not known."""

    line: int
    text: str


def validate(tree: etree._Element, schema: str | None = None) -> SchemaFinding | None:
    """What the schema refuses of a file, as `parse_tree` gives it; None: nothing. `schema`: another than the table's."""
    relaxng = etree.RelaxNG(etree.fromstring((schema or write_schema()).encode()))
    if relaxng.validate(tree):
        return None
    entries = list(relaxng.error_log)
    line = max((entry.line for entry in entries if entry.line < MAX_TREE_LINE), default=0)
    return SchemaFinding(line, "; ".join(" ".join(entry.message.split()) for entry in entries))
