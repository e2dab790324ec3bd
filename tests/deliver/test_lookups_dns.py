"""The pool of look-ups over the DNS client: silent domains take no socket from the others for long."""

from __future__ import annotations

import random
from typing import Any, cast

from mailismus.deliver.lookups import LIMIT, MOST_SLOW
from mailismus.deliver.routes.locator import Locator
from mailismus.dns.client import DnsClient
from mailismus.dns.mx import MxPolicy, MxResolver
from mailismus.dns.question import MAX_SOCKETS
from mailismus.dns.servers import NameServer
from mailismus.dns.sockets import DatagramReceiver, DnsReactor
from tests.deliver.harness import Bench, Names
from tests.deliver.test_lookups import delays_of_small_mail, p95, silent
from tests.dns.network import SERVERS, FakeUdp, response_to

ANSWER_S = 0.05
DNS_TIMEOUT_S = 5.0


class NameServers:
    """Three name servers, which never answer for `*.silent.example`, and the client of a bench."""

    def __init__(self, bench: Bench) -> None:
        self._clock: Any = bench.clock
        self.open = self.most = 0
        chance = random.Random(3)
        self.client = DnsClient(
            cast(DnsReactor, bench.clock), lambda: SERVERS, DNS_TIMEOUT_S, chance, bench.clock.seconds, open_udp=self._open
        )
        resolver = MxResolver(self.client, MxPolicy(), bench.clock, chance)
        bench.task.sessions.lookups.use_locator(Locator(Names(), resolver, self.client.forget, self.client.press))

    def _open(self, server: NameServer, receiver: DatagramReceiver) -> FakeUdp:
        servers = self

        class Udp(FakeUdp):
            def send(self, data: bytes) -> None:
                super().send(data)
                servers._clock.callLater(ANSWER_S, self._answer_if_any)

            def close(self) -> None:
                if self.is_open:
                    servers.open -= 1
                super().close()

            def _answer_if_any(self) -> None:
                question = self.query.question[0]
                name = str(question.name)
                if not self.is_open or name.endswith(".silent.example."):
                    return
                is_mx = question.rdtype == 15
                record = f"{name} MX 10 mx.{name}" if is_mx else f"{name} A 192.0.2.1"
                self.receive(response_to(self.sent[-1], record))

        self.open += 1
        self.most = max(self.most, self.open)
        return Udp(server, receiver)


def made() -> tuple[Bench, NameServers]:
    bench = Bench(has_relay=False)
    servers = NameServers(bench)
    bench.sink()
    bench.task.start()
    bench.run(0.1)
    return bench, servers


def test_2000_silent_domains_of_one_message_delay_no_other_and_end_soon() -> None:
    alone_s = p95(delays_of_small_mail(made()[0]))
    bench, servers = made()
    bench.put(*silent(2000))
    bench.run(2)
    assert p95(delays_of_small_mail(bench)) <= 2 * alone_s
    assert servers.most <= MAX_SOCKETS
    assert servers.client.counters.rejected == 0
    bench.run(2000 / 91 * DNS_TIMEOUT_S * 1.2 + 40, 0.5)
    deferred = bench.lines(b"status=deferred (451 4.4.3 no MX record for ", b"no answer from ")
    assert len(deferred) == 2000  # once each: none had waited too long
    assert servers.open == 0


def test_look_ups_that_are_ended_give_their_sockets_to_others_and_begin_anew_later() -> None:
    bench, servers = made()
    for number in range(50):
        bench.put(*silent(10, number), sender=b"big%d@a.example" % number)
    bench.run(0.2)
    assert bench.task.sessions.lookups.underway == LIMIT
    assert p95(delays_of_small_mail(bench)) <= 2.0
    assert servers.most <= MAX_SOCKETS
    bench.run(500 / MOST_SLOW * DNS_TIMEOUT_S * 1.2 + 40, 0.5)
    deferred = bench.lines(b"status=deferred (451 4.4.3 no MX record for ", b"no answer from ")
    assert len(deferred) == 500
    assert servers.open == 0
