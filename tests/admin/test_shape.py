"""The shape of a queue: for whom it waits, by age."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.admin.model.shape import AGES, LABELS, By, Row, Shape, ShapeCount, shape_json, shape_lines
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message
from tests.admin.samples import ARRIVAL, MX, deferred, incoming, message
from tests.admin.worlds import Running, World

NOW = ARRIVAL + 1000  # 16 minutes and a bit: the third column


def shape_of(*messages: Message, by: By = By.DOMAIN, now: float = NOW) -> Shape:
    count = ShapeCount(by, now)
    for one in messages:
        count.add(one)
    return count.shape()


def column(label: str, entries: int) -> tuple[int, ...]:
    return tuple(entries if one == label else 0 for one in LABELS)


def test_rows_are_the_recipients_domains_most_entries_first() -> None:
    shape = shape_of(message(1, deferred(1, b"a@X.example"), deferred(2, b"b@y.example"), incoming(3, b"c@y.example")))
    assert shape.rows == (Row(b"y.example", column("30m", 2)), Row(b"x.example", column("30m", 1)))
    assert shape.totals == column("30m", 3)


def test_rows_may_be_hosts_or_senders() -> None:
    messages = [message(1, deferred(1), incoming(2)), message(2, deferred(1), sender=b"")]
    assert {row.name: row.total for row in shape_of(*messages, by=By.HOST).rows} == {MX: 2, b"(none)": 1}
    assert {row.name: row.total for row in shape_of(*messages, by=By.SENDER).rows} == {b"b.example": 2, b"(none)": 1}


@pytest.mark.parametrize(("age_s", "label"), [(-5.0, "5m"), (0.0, "5m"), (300.0, "5m"), (300.1, "15m"), (1e9, "more")])
def test_an_entry_stands_in_the_first_column_that_is_not_below_its_age(age_s: float, label: str) -> None:
    assert shape_of(message(1, deferred()), now=ARRIVAL + age_s).totals == column(label, 1)


@given(st.floats(0, 1e7))
def test_every_age_has_one_column(age_s: float) -> None:
    totals = shape_of(message(1, deferred()), now=ARRIVAL + age_s).totals
    index = totals.index(1)
    assert index == len(AGES) or ARRIVAL + age_s - ARRIVAL <= AGES[index][1]
    assert index == 0 or ARRIVAL + age_s - ARRIVAL > AGES[index - 1][1]


def test_names_are_bounded_and_sums_stay_exact() -> None:
    count = ShapeCount(By.DOMAIN, NOW, max_names=10)
    big = message(1, *(deferred(number, b"x@big.example") for number in range(1, 51)))
    for number in range(1000):
        if number % 100 == 0:
            count.add(big)
        count.add(message(2, deferred(1, b"x@%d.example" % number)))
        assert len(count._counts) <= 21
    shape = count.shape()
    assert len(shape.rows) == 10
    assert shape.rows[0] == Row(b"big.example", column("30m", 500))
    assert sum(shape.totals) == 1500
    assert sum(shape.others) == 1500 - sum(row.total for row in shape.rows)


def test_a_limit_puts_the_rest_into_others() -> None:
    shape = shape_of(message(1, *(deferred(number, b"x@%d.example" % (number % 3)) for number in range(1, 12))))
    assert len(shape.first(1).rows) == 1
    assert shape.first(1).totals == shape.totals
    assert sum(shape.first(1).others) == sum(row.total for row in shape.rows[1:])
    assert shape.first(None) == shape.first(3) == shape


def test_the_table_fits_a_terminal_and_its_columns_line_up() -> None:
    lines = list(shape_lines(shape_of(message(1, *(deferred(number) for number in range(1, 1236))))))
    assert lines == [
        "    T 5m 15m  30m 1h 2h 4h 8h 1d 2d more  domain",
        " 1235  0   0 1235  0  0  0  0  0  0    0  TOTAL",
        " 1235  0   0 1235  0  0  0  0  0  0    0  d.example",
    ]


def test_others_are_the_last_row() -> None:
    shape = Shape(By.HOST, (Row(b"h", column("5m", 2)),), column("1h", 3))
    assert [line.split()[0] + line.rpartition("  ")[2] for line in shape_lines(shape)] == [
        "Thost",
        "5TOTAL",
        "2h",
        "3(all others)",
    ]
    assert [json.loads(line)["host"] for line in shape_json(shape)] == [None, "h", "(all others)"]


def test_json_is_an_object_for_each_row_the_totals_first() -> None:
    total, row = map(json.loads, shape_json(shape_of(message(1, deferred()))))
    assert total == {"domain": None, "entries": 1, "ages": dict(zip(LABELS, column("30m", 1), strict=True))}
    assert row == {**total, "domain": "d.example"}


def test_no_control_character_reaches_a_terminal() -> None:
    nasty = b"\x1b[2J\x9b\xff\n.example"
    entry = Entry(1, b"c@" + nasty, Area.DEFERRED, 0.0, 1, Reply(451, b"", nasty), nasty)
    for by in By:
        shape = shape_of(message(1, entry, sender=b"a@" + nasty), by=by)
        assert all(line.isprintable() for line in shape_lines(shape))
        assert all(line.isprintable() and line.isascii() for line in shape_json(shape))


def test_files_and_the_running_server_give_the_same(
    world: World, running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    running.put(*(b"x@%d.example" % (number % 300) for number in range(700)))
    assert world.run("queue", "shape", "--json") == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(objects) == 301
    assert objects[0]["entries"] == 700
    assert objects[0]["ages"]["5m"] == 700
    assert world.run("queue", "shape", "--by", "sender", "--limit", "1", "domain=7.example") == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["3", "3", *"0" * 9, "b.example"]
    running.stop()
    try:
        assert world.run("queue", "shape", "area=deferred", "--json") == 0
        assert [json.loads(line)["entries"] for line in capsys.readouterr().out.splitlines()] == [2, 2]
    finally:
        running.__init__(world.socket_path)  # type: ignore[misc] # the fixture stops it once more
        running.start()


def test_a_shape_by_anything_else_is_refused(world: World) -> None:
    with pytest.raises(SystemExit):
        world.run("queue", "shape", "--by", "colour")
