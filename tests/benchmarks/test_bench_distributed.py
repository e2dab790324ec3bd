"""What the benchmark of the shared queue makes of its counts, and that the page of a large site is made of them."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from benchmarks.distributed import kept, scale
from benchmarks.distributed.figures import (
    DEFAULT_SLICE_S,
    SLACK,
    Message,
    Run,
    Window,
    aims,
    aims_of,
    by_name,
    costs,
    from_json,
    message_of,
    over,
    to_json,
    traffic,
    without_mail,
)
from benchmarks.distributed.kept import Figures, key_of
from benchmarks.distributed.large import Large, Step
from benchmarks.distributed.page import page
from benchmarks.distributed.parts import (
    BROKER,
    OBJECTS,
    OBJECTS_DRIVER,
    QUEUE,
    REST,
    ROWS,
    SMTP_IN,
    part_of,
    shares,
)
from benchmarks.distributed.prices import READ_WITH, TRIGGER, TRIGGER_WITH, WRITE_WITH, Price
from benchmarks.distributed.scale import Site, content_in_row, due_rows_per_s, needed, row_in_trigger, slice_window_s, slices
from benchmarks.measure.budget import Profile

SERVICES = {"swift": 1.0, "cassandra": 1.0, "rabbitmq": 1.0}
CALLS = {
    "swift": {"PUT": 1.0, "DELETE": 1.0, "HEAD beside": 0.3},
    "cassandra": {"write enqueued_mails_v3": 1.0, "write deleted_mails_v2": 1.0, "read deleted_mails_v2": 2.0},
    "rabbitmq": {"publish mq.incoming": 1.0, "ack": 1.0, "confirm": 0.5, "deliver": 1.0},
}
IDLE = Window(
    10.0,
    {"swift": {"HEAD beside": 5.0}, "cassandra": {"read due_mails": 10.0}, "rabbitmq": {}},
    SERVICES,
    SERVICES,
    (0.2, 0.1),
    SERVICES,
)


def run(servers: int = 1, recipients: int = 1, turns: int = 0, cpu_ms: float = 4.0, slice_s: int = DEFAULT_SLICE_S) -> Run:
    elsewhere = (servers - 1) / servers
    reads = {"read deleted_mails_v2": 2.0 - elsewhere} | ({"read enqueued_mails_v3": elsewhere} if elsewhere else {})
    calls = {**CALLS, "cassandra": {**CALLS["cassandra"], **reads}}
    calls["swift"] = {**CALLS["swift"], "GET": elsewhere}
    message = Message(calls, dict.fromkeys(SERVICES, 1000.0), dict.fromkeys(SERVICES, 500.0), cpu_ms - 1, 1.0, SERVICES)
    return Run(servers, recipients, turns, slice_s, 600, 4096, 50.0, 0.1, message, IDLE)


def test_a_message_costs_what_a_window_without_mail_would_not_have() -> None:
    calls = {"swift": {"PUT": 20.0}, "cassandra": {"read due_mails": 45.0, "write mails": 10.0}, "rabbitmq": {}}
    load = Window(20.0, calls, {"swift": 22.0}, {"swift": 42.0}, (2.4, 1.2), {"swift": 12.0})
    found = message_of(load, IDLE, 10)
    assert found.calls == {"swift": {"PUT": 2.0}, "cassandra": {"read due_mails": 2.5, "write mails": 1.0}, "rabbitmq": {}}
    assert (found.bytes_to, found.bytes_back) == ({"swift": 2.0}, {"swift": 4.0})
    assert (found.user_ms, found.system_ms) == pytest.approx((200.0, 100.0))
    assert found.cpu_ms == pytest.approx(300.0)
    assert found.service_ms["swift"] == pytest.approx(1000.0)


def test_calls_are_counted_by_their_first_word_and_not_those_beside() -> None:
    message = run().message
    assert message.count("cassandra", "write", "compare") == 2.0
    assert message.count("swift", "HEAD") == 0.0
    assert message.count("rabbitmq", "publish") == 1.0


def test_an_aim_is_met_up_to_what_happens_now_and_then() -> None:
    good = run(cpu_ms=5.0 + SLACK)
    assert all(aim.is_met for aim in aims_of(good))
    assert over([good]) == []
    assert [aim.what for _, aim in over([run(cpu_ms=5.1 + SLACK)])] == ["CPU ms"]


def test_a_content_may_be_fetched_where_it_did_not_come_in() -> None:
    two = run(servers=2)
    assert over([two]) == []
    swift = {**two.message.calls, "swift": {"PUT": 1.0, "GET": 0.7, "DELETE": 1.0}}
    more = attrs.evolve(two, message=attrs.evolve(two.message, calls=swift))
    assert [aim.what for _, aim in over([more])] == ["GET"]


def test_aims_are_for_mail_with_one_recipient_that_is_delivered_at_once() -> None:
    assert over([run(recipients=10, cpu_ms=50.0), run(turns=1, cpu_ms=50.0), run(slice_s=4, cpu_ms=50.0)]) == []


def test_tables_tell_the_runs() -> None:
    runs = [run(), run(servers=2)]
    assert "| 1 | 1 recipient | 600 | 1.00 | 0.00 | 1.00 | 2.00 | 0.00 | 2.00 | 1.00 | 1.00 | 4 | 3 | 50 | 10 |" in costs(
        runs
    )
    assert "| 2 | 1 recipient | 1000 | 500 | 1000 | 500 | 1000 | 500 | 1 | 1 | 1 |" in traffic(runs)
    assert "| cassandra | read deleted_mails_v2 | 2.00 | 1.50 |" in by_name(runs)
    assert "| reads | 2.00 of 2: met | 2.00 of 2: met |" in aims(runs)
    more = attrs.evolve(runs[0].message, calls={**CALLS, "cassandra": {"read deleted_mails_v2": 2.5}})
    assert "| reads | 2.50 of 2: **over** | 2.00 of 2: met |" in aims([attrs.evolve(runs[0], message=more), runs[1]])
    assert (
        without_mail(runs[0])
        == "without mail a server makes, a second: calls swift 0.50, cassandra 1, rabbitmq 0; CPU 30.0 ms"
    )


def test_runs_are_named_by_their_load() -> None:
    assert run(recipients=10).name == "10 recipients"
    assert run(turns=1, slice_s=4).name == "1 recipient, deferred once, slices of 4 s"
    assert run(turns=2).name == "1 recipient, deferred 2 times"


OURS = "/w/mailismus/queue/providers/distributed"
PACKAGES = "/x/.venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("stack", "part"),
    [
        (["run (threading.py:1)", "_run_loop (cassandra/io/libevreactor.py:5)"], ROWS),
        (["run (app.py:1)", f"_call ({PACKAGES}/cassandra/connection.py:5)"], ROWS),
        ([f"doRead ({PACKAGES}/twisted/internet/tcp.py:1)", f"on_data ({PACKAGES}/pika/connection.py:5)"], BROKER),
        ([f"put ({OURS}/stores/http/store.py:9)", f"request ({PACKAGES}/twisted/web/client.py:1)"], OBJECTS_DRIVER),
        ([f"put ({OURS}/stores/http/sigv4.py:9)", "new (hashlib.py:1)"], OBJECTS),
        ([f"settle ({OURS}/settle/settling.py:9)", f"callback ({PACKAGES}/twisted/internet/defer.py:1)"], QUEUE),
        (["line (/w/mailismus/smtp/server/engine.py:9)"], SMTP_IN),
        (["main (/x/a.py:1)"], REST),
    ],
)
def test_a_sample_belongs_to_its_innermost_part(stack: list[str], part: str) -> None:
    assert part_of(stack) == part


def test_threads_weigh_what_they_used() -> None:
    profile = Profile({1: {("line (/w/mailismus/smtp/server/engine.py:9)",): 5}, 2: {("main (/x/a.py:1)",): 50}})
    found = shares(profile, {1: 3.0, 2: 0.5, 3: 0.5})
    assert found[SMTP_IN] == 0.75
    assert found[REST] == 0.25


# The file of figures, and the page.


def figures() -> Figures:
    found = Figures("2 cores, a test")
    disk = {"enqueued_mails_v3": 300.0, "deleted_mails_v2": 100.0, "swift files": 1.0}
    loads = [run(), run(servers=2), run(recipients=10), run(turns=1, cpu_ms=8.0), run(servers=2, turns=1, cpu_ms=8.0)]
    for one in loads:
        found = found.with_run(one, {**disk, "mails": 100.0 * one.turns})
    names = ["PUT", "GET", "DELETE", "write a share", "read a share", WRITE_WITH, READ_WITH, TRIGGER, TRIGGER_WITH]
    marks = Price("read marks", "cassandra", 0.4, 0.5)
    prices = [Price(name, "swift", 0.5, 2.0 if name.isupper() else 1.0) for name in names]
    prices[-1] = Price(TRIGGER_WITH, "rabbitmq", 0.6, 1.1)
    told = "96 entries"
    filling, counting = Step("fill, 2 messages", 4.0, told, 0, 0, 2), Step("queue count", 0.5, told, 1 << 27, 3, 0)
    steps = (filling, counting, Step("queue list", 2.0, told, 1 << 27, 9, 0))
    return attrs.evolve(found, prices=[marks, *prices]).with_large(Large(96, 2, steps, {"enqueued_mails_v3": 9600.0}))


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    assert kept.read(path) == Figures()
    kept.write(path, figures())
    assert kept.read(path) == figures()
    assert from_json(to_json(run())) == run()


def test_of_runs_of_one_load_the_least_counts() -> None:
    found = figures().with_run(run(cpu_ms=3.0), {})
    assert len(found.runs) == len(figures().runs)
    assert found.run(1).message.cpu_ms == 3.0
    assert found.disk[key_of(run())] == {}
    slower = run(cpu_ms=3.5)
    slower = attrs.evolve(
        slower, message=attrs.evolve(slower.message, service_ms={**SERVICES, "swift": 0.5, "rabbitmq": 2.0})
    )
    again = found.with_run(slower, {"mails": 1.0})
    assert again.run(1).message.cpu_ms == 3.0
    assert again.run(1).message.service_ms == {**SERVICES, "swift": 0.5}
    assert again.disk == found.disk


def test_what_was_not_measured_is_said() -> None:
    found = figures()
    with pytest.raises(LookupError, match="not measured: 2 servers, 10 recipients"):
        found.run(2, recipients=10)


def test_more_servers_deliver_more_of_what_others_took() -> None:
    plain = needed(attrs.evolve(figures()), Site(deferred=0.0))
    assert plain.elsewhere == pytest.approx(1 - 1 / plain.processes)
    assert plain.message.count("swift", "GET") == pytest.approx(plain.elsewhere)
    assert plain.message.count("cassandra", "read") == pytest.approx(2)


def test_cores_nodes_and_bytes_follow_from_the_rate() -> None:
    site = Site(messages_per_hour=3_600_000, deferred=0.0)
    found = needed(figures(), site)
    assert found.our_cores == pytest.approx(4.0 + 0.6 * found.elsewhere)
    assert found.processes == 7
    assert found.cores["cassandra"] == pytest.approx(3 * (1.0 + 0.5 * found.elsewhere))
    assert found.cores["swift"] == pytest.approx(3 * (1.0 + 2 * found.elsewhere))
    assert found.cores["rabbitmq"] == pytest.approx(3.0)
    assert found.nodes == {"swift": 3, "cassandra": 3, "rabbitmq": 3}
    assert found.to["swift"] == pytest.approx(86_400_000 * 1000.0)
    assert found.rows_disk == pytest.approx(86_400_000 * 400.0 * 3)
    assert found.contents_disk == 0.0
    assert found.tombstones == pytest.approx(7 * 86_400_000 * 3)


def test_the_deferred_cost_their_share_more() -> None:
    found = needed(figures(), Site(deferred=0.5))
    assert found.message.cpu_ms == pytest.approx(6.0 + 0.6 * found.elsewhere)
    assert scale.row_bytes(figures(), Site(deferred=0.5)) == pytest.approx(450.0)


@pytest.mark.parametrize(
    ("an_hour", "window", "found"),
    [(10_000_000, 4, (60, 17)), (600_000, 60, (60, 1)), (1_000_000, 36, (60, 2)), (1000, 3600, (3600, 1))],
)
def test_a_partition_has_about_ten_thousand_mails(an_hour: int, window: int, found: tuple[int, int]) -> None:
    site = Site(messages_per_hour=an_hour)
    assert slice_window_s(site) == window
    assert slices(site) == found


def test_rows_of_what_waits_are_read_by_each_server_some_times() -> None:
    assert due_rows_per_s(Site(messages_per_hour=3_600_000, deferred=0.1), 2) == pytest.approx(1000 * 0.1 * 2 * 7)


def test_a_row_in_the_trigger_saves_what_rows_cost_more_than_marks_where_the_mail_did_not_come_in() -> None:
    way = row_in_trigger(figures(), Site(), 0.5)
    assert way.calls == {"reads": 0.0}
    assert way.ours_ms == pytest.approx(0.1 - 0.05)
    assert way.theirs_ms == {"cassandra": -0.25, "rabbitmq": pytest.approx(0.1)}
    assert way.bytes_per_day == pytest.approx(Site().rate * 86_400 * 675)


def test_a_content_in_the_row_saves_its_object_and_stays() -> None:
    way = content_in_row(figures(), Site(), 0.5)
    assert way.theirs_ms == {"cassandra": 0.0, "swift": -5.0}
    assert way.ours_ms == pytest.approx(-1.25)
    assert way.rows_disk == pytest.approx(Site().rate * 86_400 * 3 * 4096)


def test_a_page_is_made_of_any_figures() -> None:
    text = page(figures(), Site())
    assert "# The shared queue at 10,000,000 messages an hour" in text
    assert "| queue list | 2 | 20833 | 96 entries | 128 | 9 | 0 |" in text
    assert "| queue count | 0.50 | 0.50 | 96 entries | 128 | 3 | 0 |" in text
