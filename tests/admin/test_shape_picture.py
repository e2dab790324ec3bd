"""`queue shape --svg`: the picture, and the file that it is written to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from lxml import etree

from mailismus.admin.commands.new_file import write_file
from mailismus.admin.model.shape import LABELS, By, Row, Shape
from mailismus.admin.render.picture import MAX_ROWS, NAME_LENGTH, shape_svg
from mailismus.errors import StartError
from tests.admin.worlds import Running, World

NONE = (0,) * len(LABELS)
SVG = "{http://www.w3.org/2000/svg}"


def row(name: bytes, *counts: int) -> Row:
    return Row(name, (*counts, *NONE[len(counts) :]))


def bars_of(picture: str) -> list[tuple[str, float]]:
    """The parts of all bars: what they say, and their width."""
    parts = []
    for rect in etree.fromstring(picture.encode()).iter(f"{SVG}rect"):
        title = rect.find(f"{SVG}title")
        if title is not None:
            parts.append((title.text or "", float(rect.get("width") or 0)))
    return parts


def texts_of(picture: str) -> list[str]:
    return [text.text or "" for text in etree.fromstring(picture.encode()).iter(f"{SVG}text")]


def test_each_part_of_a_bar_says_name_age_and_number_and_is_as_long_as_its_share() -> None:
    picture = shape_svg(Shape(By.DOMAIN, (row(b"a.example", 600, 0, 300), row(b"b.example", 100)), NONE), "now")
    parts = bars_of(picture)
    assert [words for words, _ in parts] == ["a.example, 5m: 600", "a.example, 30m: 300", "b.example, 5m: 100"]
    widths = [width for _, width in parts]
    assert widths[0] - widths[2] == pytest.approx(5 * (widths[2] - 1), abs=0.3)
    assert "1,000 entries by recipient's domain" in texts_of(picture)


def test_one_entry_beside_a_million_is_seen_and_all_stays_inside() -> None:
    picture = shape_svg(Shape(By.HOST, (row(b"big", *[10**12] * len(LABELS)), row(b"small", 1)), NONE), "now")
    assert bars_of(picture)[-1][1] >= 1
    for rect in etree.fromstring(picture.encode()).iter(f"{SVG}rect"):
        assert float(rect.get("x") or 0) + float(rect.get("width") or 0) <= 960


def test_further_rows_are_one_bar() -> None:
    rows = tuple(row(b"%d.example" % number, 1) for number in range(MAX_ROWS + 10))
    parts = bars_of(shape_svg(Shape(By.SENDER, rows, row(b"", 5).counts), "now"))
    assert len(parts) == MAX_ROWS + 1
    assert parts[-1][0] == "(all others), 5m: 15"


def test_an_empty_queue_says_so() -> None:
    assert "No entry matches." in texts_of(shape_svg(Shape(By.DOMAIN, (), NONE), "now"))


@pytest.mark.parametrize(
    "name",
    [
        b"</text><script>alert(1)</script>.example",
        b"\x00\x1b[2J\x9b\xff\n.example",
        b"\xef\xbf\xbe\xed\xa0\x80.example",
        b"'\"&amp;<!--]]>.example",
        "\u202eelpmaxe\u202c.example".encode(),
        b"x" * 1000,
    ],
)
def test_a_hostile_name_is_only_text(name: bytes) -> None:
    picture = shape_svg(Shape(By.DOMAIN, (row(name, 1),), NONE), "a <title> & more")
    top = etree.fromstring(picture.encode())
    assert {str(element.tag).removeprefix(SVG) for element in top.iter()} == {"svg", "title", "rect", "text"}
    assert all(len(words) <= NAME_LENGTH or "entry" in words or "more" in words for words in texts_of(picture))
    assert all(words.isprintable() for words in texts_of(picture))


def test_the_command_writes_the_picture_beside_the_table(
    world: World, running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running.put(*(b"x@%d.example" % (number % 3) for number in range(30)))
    file = tmp_path / "shape.svg"
    file.write_text("old")
    assert world.run("queue", "shape", "--svg", str(file)) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5
    assert [words for words, _ in bars_of(file.read_text())] == [f"{number}.example, 5m: 10" for number in range(3)]


def test_others_may_not_read_it(tmp_path: Path) -> None:
    file = tmp_path / "new"
    write_file(str(file), b"x")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["directory", "link", "dangling link", "fifo"])
def test_what_is_no_regular_file_is_left_alone(kind: str, tmp_path: Path) -> None:
    path, other = tmp_path / "name", tmp_path / "other"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        if kind == "link":
            other.write_text("precious")
        path.symlink_to(other)
    before = path.lstat().st_ino
    with pytest.raises(StartError, match="is no regular file") as caught:
        write_file(str(path), b"x")
    assert caught.value.status == os.EX_IOERR
    assert path.lstat().st_ino == before
    assert not other.exists() or other.read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1 + other.exists()


def test_a_place_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"can't write .*/no/x: No such file or directory"):
        write_file(str(tmp_path / "no" / "x"), b"x")
