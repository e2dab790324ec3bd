"""The schedule: which job goes when, to which host."""

from __future__ import annotations

from mailismus.deliver.job import Job
from mailismus.deliver.route import NextHop
from mailismus.deliver.schedule import DEAD_S, HOST_PAUSE_S, Hop, Schedule
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Entry, Message

REFUSED = Reply(451, b"4.4.1", b"refused")


def job(now: float = 0.0, entries: int = 1) -> Job:
    some = [Entry(number, b"r@b.example", Area.INCOMING, 0.0) for number in range(1, entries + 1)]
    return Job(Message(SpoolId(1), b"", b"-", False, 0.0, 10, entries, some), some, now, now)


def scheduled(addresses: list[str], jobs: int, **limits: int) -> tuple[Schedule[object], Hop[object]]:
    schedule: Schedule[object] = Schedule(limits.get("total", 0), limits.get("host", 0))
    hop = schedule.hop(NextHop("relay.example", 25))
    hop.set_addresses(addresses)
    hop.pending.extend(job() for _ in range(jobs))
    hop.entries = jobs
    return schedule, hop


def open_all(schedule: Schedule[object], hop: Hop[object], now: float = 0.0) -> list[str]:
    opened: list[str] = []
    while schedule.wants_session(hop, now) and (address := schedule.choose_host(hop, now)) is not None:
        schedule.connection_opened(hop, address)
        opened.append(address)
    return opened


def test_one_connection_for_every_four_jobs_once_the_host_has_proved_itself() -> None:
    schedule, hop = scheduled(["192.0.2.1"], 20)
    assert open_all(schedule, hop) == ["192.0.2.1"]
    schedule.session_stands(hop, "192.0.2.1")
    assert len(open_all(schedule, hop)) == 5


def test_jobs_that_wait_long_get_more_connections() -> None:
    schedule, hop = scheduled(["192.0.2.1"], 3)
    schedule.connection_opened(hop, "192.0.2.1")
    schedule.session_stands(hop, "192.0.2.1")
    assert not schedule.wants_session(hop, 0.05)
    assert len(open_all(schedule, hop, 0.15)) == 1
    assert len(open_all(schedule, hop, 60.0)) == 2


def test_a_host_gets_no_more_than_its_connections_and_all_no_more_than_the_total() -> None:
    schedule, hop = scheduled(["192.0.2.1"], 1000, host=20)
    open_all(schedule, hop)
    schedule.session_stands(hop, "192.0.2.1")
    assert len(open_all(schedule, hop)) == 19
    schedule, hop = scheduled(["192.0.2.1", "192.0.2.2"], 1000, host=20, total=7)
    open_all(schedule, hop)
    for address in ("192.0.2.1", "192.0.2.2"):
        schedule.session_stands(hop, address)
    open_all(schedule, hop)
    assert schedule.open == 7
    assert list(schedule.starved) == [hop]


def test_hosts_share_the_load() -> None:
    addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    schedule, hop = scheduled(addresses, 1000, host=20)
    assert open_all(schedule, hop) == addresses
    for address in addresses:
        schedule.session_stands(hop, address)
    open_all(schedule, hop)
    assert [host.connections for host in hop.hosts] == [20, 20, 20]


def test_the_next_hop_is_dead_only_when_its_last_host_has_failed() -> None:
    schedule, hop = scheduled(["192.0.2.1", "192.0.2.2"], 4)
    schedule.host_failed(hop, "192.0.2.1", REFUSED, 0.0)
    assert not hop.is_dead(0.0)
    assert schedule.choose_host(hop, 0.0) == "192.0.2.2"
    schedule.host_failed(hop, "192.0.2.2", REFUSED, 0.0)
    assert hop.is_dead(0.0)
    assert hop.dead_reply == REFUSED
    assert not hop.is_dead(DEAD_S)
    assert schedule.choose_host(hop, DEAD_S) is not None


def test_a_host_that_takes_no_more_connections_is_used_through_those_it_has() -> None:
    schedule, hop = scheduled(["192.0.2.1"], 100)
    schedule.connection_opened(hop, "192.0.2.1")
    schedule.session_stands(hop, "192.0.2.1")
    schedule.connection_opened(hop, "192.0.2.1")
    schedule.host_failed(hop, "192.0.2.1", REFUSED, 0.0)
    schedule.connection_closed(hop, "192.0.2.1")
    assert not hop.is_dead(0.0)
    assert schedule.choose_host(hop, HOST_PAUSE_S - 1) is None
    assert schedule.choose_host(hop, HOST_PAUSE_S) == "192.0.2.1"
    schedule.connection_closed(hop, "192.0.2.1")
    schedule.session_ended(hop, "192.0.2.1")
    assert schedule.choose_host(hop, 1.0) == "192.0.2.1"  # nothing else is left to try


def test_a_slow_next_hop_shares_the_room_with_others() -> None:
    schedule, hop = scheduled(["192.0.2.1"], 100)
    assert schedule.excess(hop, 0, 4.0)[0] == []
    jobs, delay_s = schedule.excess(hop, 0, 20.0)
    assert len(jobs) == 50
    assert delay_s == 10.0
    assert hop.entries == len(hop.pending) == 50
    assert schedule.excess(hop, 50, 20.0)[0] == []


def test_what_is_known_of_hosts_survives_a_new_answer() -> None:
    schedule, hop = scheduled(["192.0.2.1", "192.0.2.2"], 100)
    schedule.connection_opened(hop, "192.0.2.1")
    hop.set_addresses(["192.0.2.1", "192.0.2.3"])
    assert [(host.address, host.connections) for host in hop.hosts] == [("192.0.2.1", 1), ("192.0.2.3", 0)]
    schedule.connection_closed(hop, "192.0.2.2")
    schedule.connection_closed(hop, "192.0.2.1")
    assert [host.connections for host in hop.hosts] == [0, 0]
