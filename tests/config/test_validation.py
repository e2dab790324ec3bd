"""The schema as a second opinion: it agrees with the table, and says where it would not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailismus.__main__ import main
from mailismus.config.generate.schema import write_schema
from mailismus.config.generate.validation import SchemaFinding, validate
from mailismus.config.read.document import MAX_TREE_LINE, parse_tree
from mailismus.start.commands import config as configcommands
from tests.config.corpus import BROKEN, GOOD, in_queue


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_it_has_nothing_to_say_of_a_good_file(text: str) -> None:
    assert validate(parse_tree(text.encode(), "f")) is None


def test_it_names_the_line_where_the_innermost_element_begins() -> None:
    finding = validate(parse_tree(b"<mailserver>\n<mta>\n<queue\n\n\n>\n<x/></queue></mta></mailserver>", "f"))
    assert finding is not None
    assert finding.line == 2 or finding.line == 3
    assert "failed to validate" in finding.text


def test_lines_that_lxml_can_not_hold_are_left_out() -> None:
    text = "<mailserver>" + "\n" * MAX_TREE_LINE + "<x/></mailserver>"
    finding = validate(parse_tree(text.encode(), "f"))
    assert finding is not None
    assert finding.line < MAX_TREE_LINE


def test_the_check_tells_where_schema_and_table_disagree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "m.xml"
    file.write_text(in_queue("<minfree>0</minfree>"))
    schema = write_schema().replace('name="minfree"', 'name="other"')
    monkeypatch.setattr(configcommands, "validate", lambda tree: validate(tree, schema))
    assert main(["--config", str(file), "config", "check"]) == 0
    assert "warning: the schema refuses this, and the server takes it" in capsys.readouterr().out


def test_it_is_not_asked_where_our_own_message_has_spoken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(tree: object) -> SchemaFinding:
        raise AssertionError("it was asked")

    monkeypatch.setattr(configcommands, "validate", fail)
    for number, broken in enumerate(BROKEN):
        file = tmp_path / f"{number}.xml"
        file.write_text(broken.text)
        assert main(["--config", str(file), "config", "check"]) == 78
        assert "schema" not in capsys.readouterr().err
