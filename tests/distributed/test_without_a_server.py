"""Commands about a shared queue that no server serves: they ask the stores, and change nothing."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from mailismus.admin.render.listing import count_json, json_lines
from mailismus.mail.ids import format_spool_id
from mailismus.queue.interface import Area, Filter, IQueue, Message, Settlement
from mailismus.queue.providers.distributed.format.tables import ENQUEUED, TABLES
from tests.contracts.bench import CONTENT, LATER_REPLY, Bench, addresses
from tests.distributed.commands import ModelCommands
from tests.distributed.harness import ModelHarness


@pytest.fixture
def harness() -> ModelHarness:
    return ModelHarness()


@pytest.fixture
def bench(harness: ModelHarness) -> Bench:
    return Bench(harness, harness.make())


@pytest.fixture
def commands(
    harness: ModelHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> ModelCommands:
    return ModelCommands(harness, tmp_path, monkeypatch, capsys)


def stop(bench: Bench) -> None:
    bench.harness.wait(bench.queue.close())


def all_of(harness: ModelHarness, queue: IQueue) -> list[Message]:
    found: list[Message] = []
    cursor: object | None = None
    while True:
        page = harness.wait(queue.search(Filter(), cursor, 3))
        found += page.messages
        cursor = page.cursor
        if cursor is None:
            return found


def by_entry(lines: list[dict[str, Any]]) -> dict[tuple[Any, Any], dict[str, Any]]:
    """Each recipient with what is said of its message: objects hold what was found together."""
    return {(line["queue_id"], one["number"]): {**line, "recipients": [one]} for line in lines for one in line["recipients"]}


def filled(bench: Bench) -> None:
    """Mail in all areas that a server puts some into."""
    bench.put(addresses(3))
    bench.put()
    taken = bench.take_ids()
    bench.defer(taken[:2], bench.now() + 100)
    bench.commit((), [Settlement(taken[2], Area.BOUNCES, bench.now() + 60, 1, LATER_REPLY)])
    bench.queue.give_back(taken[3:], bench.now() + 30)
    bench.harness.advance(1)
    bench.put()


def test_lists_and_counts_are_those_of_the_running_server(
    harness: ModelHarness, bench: Bench, commands: ModelCommands
) -> None:
    filled(bench)
    running = by_entry([_parsed(line) for message in all_of(harness, bench.queue) for line in json_lines(message)])
    counted = _parsed(count_json(bench.summary()))
    stop(bench)
    assert by_entry(commands.objects("queue", "list")) == running
    assert len(running) == 5
    assert commands.objects("queue", "count") == [counted]
    assert commands.objects("queue", "count", "area=deferred")[0]["deferred"]["entries"] == 2
    assert len(commands.objects("queue", "list", "--limit", "2")) <= 2


def _parsed(line: str) -> Any:
    return json.loads(line)


def test_a_message_is_shown_with_its_content(bench: Bench, commands: ModelCommands) -> None:
    spool_id = format_spool_id(bench.put())
    stop(bench)
    status, out, err = commands.run("queue", "show", spool_id)
    assert (status, err) == (os.EX_OK, "")
    assert spool_id in out
    assert CONTENT.partition(b"\r\n")[0].decode() in out
    assert commands.run("queue", "show", "00000000000000FF")[0] == os.EX_DATAERR


def test_what_only_reads_works_and_changes_nothing(harness: ModelHarness, bench: Bench, commands: ModelCommands) -> None:
    filled(bench)
    stop(bench)
    before = state_of(harness)
    for words in (["why", "y.example"], ["queue", "shape"], ["queue", "why", "d1@example.com"], ["queue", "list"]):
        status, _, err = commands.run(*words)
        assert (status, err) == (os.EX_OK, ""), words
    assert state_of(harness) == before
    assert not (commands.path / "queue").exists()


def state_of(harness: ModelHarness) -> object:
    """All that the stores keep."""
    world = harness.world
    rows = {name: [harness.wait(world.server().rows.all_rows(table))] for name, table in NAMED.items()}
    triggers = {name: [message.body for message in queue.waiting] for name, queue in world.broker.queues.items()}
    return rows, triggers, dict(world.objects.objects or {})


NAMED = {table.name: table for table in TABLES}


def test_a_flush_and_mail_of_programs_need_the_server(bench: Bench, commands: ModelCommands) -> None:
    bench.put()
    stop(bench)
    assert commands.run("queue", "flush")[0] == os.EX_UNAVAILABLE


def test_a_server_that_serves_the_queue_elsewhere_is_not_in_the_way(bench: Bench, commands: ModelCommands) -> None:
    bench.put()
    assert len(commands.objects("queue", "list")) == 1
    assert len(bench.take_ids()) == 1


def test_services_that_are_away_end_it_with_75(harness: ModelHarness, bench: Bench, commands: ModelCommands) -> None:
    bench.put()
    stop(bench)
    harness.are_away = True
    for words in (["queue", "list"], ["queue", "count"], ["why", "y.example"], ["dump", "incoming/0/0"]):
        status, out, err = commands.run(*words)
        assert (status, out) == (os.EX_TEMPFAIL, ""), words
        assert "lies in its services, and can't be asked" in err


def test_what_was_never_set_up_is_refused(harness: ModelHarness, commands: ModelCommands) -> None:
    harness.world.rows.tables.clear()
    status, _, err = commands.run("queue", "count")
    assert status == os.EX_CONFIG
    assert "mailismus queue setup" in err


def test_an_empty_queue_is_one(commands: ModelCommands) -> None:
    assert commands.run("queue", "list") == (os.EX_OK, "Mail queue is empty\n", "")


def test_a_share_that_is_damaged_is_told_and_passed_over(
    harness: ModelHarness, bench: Bench, commands: ModelCommands
) -> None:
    bench.put()
    bench.put()
    stop(bench)
    lose_a_cell(harness, "sender")
    status, out, err = commands.run("queue", "list", "--json")
    assert status == os.EX_IOERR
    assert len(out.splitlines()) == 1
    assert "share" in err


def lose_a_cell(harness: ModelHarness, cell: str) -> None:
    """Of one head."""
    for partition in harness.world.rows.tables[ENQUEUED.name].values():
        for (_, number), row in partition.rows.items():
            if number == 0:
                del row.cells[cell]
                return


# dumps


def test_a_dump_tells_rows_marks_and_contents(harness: ModelHarness, bench: Bench, commands: ModelCommands) -> None:
    spool_id = bench.put(addresses(3))
    taken = bench.take_ids()
    bench.defer(taken[:1], bench.now() + 100)
    bench.remove(taken[1:2])
    stop(bench)
    status, out, err = commands.run("dump", format_spool_id(spool_id))
    assert (status, err) == (os.EX_OK, "")
    lines = out.splitlines()
    assert lines[0] == f"message {format_spool_id(spool_id)}: 2 index rows"
    assert sum(line.startswith("share ") for line in lines) == 2
    assert sum(line.startswith("  entry ") for line in lines) == 4
    (moved,) = [line for line in lines if "moved to deferred/" in line]
    successor = moved.rpartition(" ")[2]
    assert any(line.startswith("  mark of entry 2: delivered or reported ") for line in lines)
    assert [line for line in lines if line.startswith("  content: ")] == [
        f"  content: {len(CONTENT)} bytes, which check"
    ] * 2
    assert any(line.startswith("  due row of ") for line in lines)
    whole = commands.run("dump", successor)[1]
    assert whole.splitlines()[0] == f"share {successor}: 2 rows, 0 marks"
    assert "  moved from incoming/" in whole
    place = successor.rpartition("/")[0]
    assert commands.run("dump", place)[1] == whole


def test_a_dump_of_what_is_damaged_prints_it_as_it_is(harness: ModelHarness, bench: Bench, commands: ModelCommands) -> None:
    bench.put()
    stop(bench)
    lose_a_cell(harness, "blob_key")
    gap = commands.run("queue", "list")[2]
    name = re.findall(r"incoming/[0-9]+/[0-9]+/[0-9a-f-]{36}", gap)
    found = [line for line in commands.run("dump", name[0])[1].splitlines() if line.startswith("  DOES NOT CHECK: ")]
    assert len(found) == 2
    assert "blob_sha256=" in found[0]


def test_a_dump_of_nothing_says_so(harness: ModelHarness, bench: Bench, commands: ModelCommands) -> None:
    stop(bench)
    for name in ("00000000000000FF", "incoming/0/0", "bounces/0/0/00000000-0000-0000-0000-000000000001"):
        status, out, err = commands.run("dump", name)
        assert (status, out) == (os.EX_DATAERR, "")
        assert "nothing of that name" in err
    assert commands.run("dump", "incoming/x")[0] == os.EX_USAGE


def test_a_content_that_is_lost_or_another_one_is_told(harness: ModelHarness, bench: Bench, commands: ModelCommands) -> None:
    spool_id = format_spool_id(bench.put())
    stop(bench)
    objects = harness.world.objects.objects
    assert objects is not None
    (key,) = objects
    objects[key] = b"another"
    assert "  content: 7 bytes, WHICH DO NOT CHECK" in commands.run("dump", spool_id)[1]
    objects.clear()
    assert "  content: NOT THERE" in commands.run("dump", spool_id)[1]


# acts


def areas(commands: ModelCommands) -> dict[str, int]:
    """Entries of each area that has some."""
    (counts,) = commands.objects("queue", "count")
    return {name: one["entries"] for name, one in counts.items() if isinstance(one, dict) and one["entries"]}


def test_acts_are_done_and_undone(harness: ModelHarness, bench: Bench, commands: ModelCommands) -> None:
    bench.put(addresses(3))
    bench.put()
    taken = bench.take_ids()
    bench.defer(taken[:1], bench.now() + 7200)
    stop(bench)
    harness.advance(40)
    assert areas(commands) == {"incoming": 3, "deferred": 1}
    status, out, err = commands.run("queue", "hold", "area=incoming", "--reason", "look")
    assert (status, err) == (os.EX_OK, "")
    assert out.splitlines()[-1] == "A1: 3 entries held"
    assert areas(commands) == {"hold": 3, "deferred": 1}
    assert commands.run("queue", "delete", "--all", "--reason", "spam")[1].splitlines()[-1] == "A2: 4 entries deleted"
    assert areas(commands) == {"deleted": 4}
    assert commands.run("queue", "undo", "A2")[:2] == (os.EX_OK, "A2 undone: 4 entries restored\n")
    assert areas(commands) == {"hold": 3, "deferred": 1}
    acts = commands.objects("queue", "acts")
    assert [(one["act"], one["kind"], one["state"]) for one in acts] == [
        ("A1", "hold", "done"),
        ("A2", "delete", "undone"),
    ]
    assert commands.run("queue", "bounce", "area=deferred", "--reason", "no")[1].splitlines()[-1] == "A3: 1 entry bounced"
    harness.advance(40)
    again = Bench(harness, harness.make())
    assert len(again.take_ids(Area.BOUNCES)) == 1


def test_acts_are_known_beside_a_server_of_another_host(bench: Bench, commands: ModelCommands) -> None:
    bench.put()
    assert commands.run("queue", "acts") == (os.EX_OK, "No act is on record\n", "")
    assert len(bench.take_ids()) == 1
