"""Hosts that come and go at random, shared by domains: every message arrives, and nothing is left over in any count."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mailismus.queue.filter import parse_filter
from mailismus.queue.interface import Area
from tests.deliver.harness import Bench
from tests.fakes.sink import Act, Script

HOSTS = tuple(f"192.0.2.{number}" for number in range(1, 5))
DOMAINS = {"b.example": "0 1 2", "c.example": "1 3", "d.example": "2 0", "e.example": "3"}
SCRIPTS: tuple[Script, ...] = (
    {},
    {},
    {"greeting": b"450 busy\r\n"},
    {"greeting": Act.CLOSE},
    {"EHLO": Act.ABORT},
    {"MAIL": Act.CLOSE},
    {"MAIL": b"421 4.3.2 bye\r\n"},
    {"RCPT": b"450 4.2.0 later\r\n"},
    {"RCPT": b"421 4.7.0 too fast\r\n"},
    {"DATA": Act.ABORT},
    {"DATA": b"421 4.3.2 bye\r\n"},
    {"dot": b"451 4.3.0 later\r\n"},
)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_hosts_do_all_mail_arrives_once_they_live(seed: int) -> None:
    chance = random.Random(seed)
    limits: dict[str, Any] = {
        "maxserverconnections": chance.choice((1, 3, 20)),
        "maxconnections": chance.choice((2, 5, 100)),
    }
    bench = Bench(has_relay=False, delays_s=(2.0, 5.0), maxmessages=chance.choice((2, 100)), queuecache=100, **limits)
    for domain, numbers in DOMAINS.items():
        hosts = [HOSTS[int(number)] for number in numbers.split()]
        bench.names.mx(domain, *((10 * (place // 2), f"mx{place}.{domain}", host) for place, host in enumerate(hosts)))
    sinks = {host: bench.sink(host=host) for host in HOSTS}
    bench.network.latency_s = chance.choice((0.0, 0.02))
    bench.task.start()
    sent: list[bytes] = []
    for _ in range(25):
        for host in HOSTS:
            if chance.random() < 0.3:
                bench.network.servers.pop((host, 25), None)
            else:
                bench.network.servers[host, 25] = sinks[host]
            if chance.random() < 0.5:
                sinks[host].script = chance.choice(SCRIPTS)
        for _ in range(chance.randrange(12)):
            sent.append(b"r%d@%b" % (len(sent), chance.choice(list(DOMAINS)).encode()))
            bench.put(sent[-1])
        bench.run(1)
    for host, sink in sinks.items():
        bench.network.servers[host, 25] = sink
        sink.script = {}
    bench.queue.visit_all(parse_filter([], 0.0))
    bench.run(40)
    assert sorted(recipient for sink in sinks.values() for recipient in sink.acknowledged()) == sorted(sent)
    assert bench.count(Area.DEFERRED) == bench.count(Area.INCOMING) == bench.task.held == 0
    schedule = bench.task.sessions.schedule
    assert (schedule.destinations, schedule.has_work) == ({}, False)
    assert schedule.pool.open == bench.task.sessions.open == 0
    hosts_now = [schedule.destdb.find(host, 25) for host in HOSTS]
    assert {(host.connections, host.standing) for host in hosts_now} == {(0, 0)}
