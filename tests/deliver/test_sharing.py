"""Next hops that share a host: none of them waits for ever while another has always something to send."""

from __future__ import annotations

from tests.deliver.harness import Bench
from tests.fakes.sink import Action, FewConnections, Sink, SinkFactory


def shared_host(**changes: object) -> Bench:
    """busy.example and quiet.example have the same MX host."""
    bench = Bench(has_relay=False, **changes)  # type: ignore[arg-type]  # by name
    for domain in ("busy.example", "quiet.example"):
        bench.names.mx(domain, (10, "mx.example", "192.0.2.1"))
    bench.network.latency_s = 0.05
    bench.task.start()
    return bench


def messages_before_the_quiet_one(bench: Bench, sink: SinkFactory, most_s: int) -> int:
    """How many messages to busy.example are delivered before the one to quiet.example, while there is always another."""
    number = 0
    for second in range(most_s):
        while bench.task.held < 50 and number < 50 * (second + 1):
            bench.put(b"r%d@busy.example" % number)
            number += 1
            bench.run(0, 0)
        if second == 1:
            bench.put(b"r@quiet.example")
        bench.run(1, 0.05)
        if b"r@quiet.example" in sink.acknowledged():
            return sink.acknowledged().index(b"r@quiet.example")
    raise AssertionError(f"not delivered in {most_s} s, {len(sink.acknowledged())} others were")


def test_a_host_that_ends_every_session_itself_serves_all_who_wait_for_it() -> None:
    bench = shared_host(maxserverconnections=1)

    def mail(sink: Sink) -> Action:
        return b"250 ok\r\n" if sink.messages < 5 else b"421 4.7.0 enough for now\r\n"

    messages_before_the_quiet_one(bench, bench.sink({"MAIL": mail}), 20)


def test_a_host_that_takes_one_connection_alone_serves_all_who_want_it() -> None:
    bench = shared_host(maxmessages=10)
    sink = bench.sink({"greeting": FewConnections(1)})
    messages_before_the_quiet_one(bench, sink, 120)


def test_a_host_that_takes_few_connections_serves_all_who_want_it() -> None:
    bench = shared_host(maxmessages=10)
    sink = bench.sink({"greeting": FewConnections(3)})
    messages_before_the_quiet_one(bench, sink, 240)
