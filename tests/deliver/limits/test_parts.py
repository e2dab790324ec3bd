"""Parts of limits over all servers, as delivery uses them."""

from __future__ import annotations

import gc
from collections.abc import Callable

import attrs

from mailismus.deliver.limits.parts import MAX_NAME, SharedLimits, SharedMeters, name_of_limit
from mailismus.deliver.limits.rate import Rate
from mailismus.deliver.limits.sets import LimitsOf
from mailismus.deliver.schedule.endpoint import Endpoint
from mailismus.deliver.schedule.limits import NO_LIMIT
from mailismus.queue.limits import ILimitPart, ILimitUse
from tests.deliver.harness import deliver_settings


@attrs.define
class Part:
    """A part whose size the test sets."""

    use: ILimitUse
    size: int = 0
    others: int = 0
    wishes: int = 0

    def ask(self, limit: int) -> int:
        return min(self.size, limit)

    def want(self) -> None:
        self.wishes += 1

    def allowed(self) -> int:
        return self.size


@attrs.define
class Limits:
    """`ILimits` of a test."""

    servers: int = 2
    parts: dict[str, Part] = attrs.field(factory=dict)
    first: int = 0

    def part(self, use: ILimitUse) -> ILimitPart:
        return self.parts.setdefault(use.name, Part(use, self.first))

    def listen(self, on_change: Callable[[], None]) -> None:
        raise AssertionError("nobody listens here")


HOST = "connections 192.0.2.1 25"


def shared_endpoint(address: str, port: int, limits: Limits) -> Endpoint:
    endpoint = Endpoint(address, port)
    endpoint.share(limits)
    return endpoint


def test_a_host_has_as_many_connections_as_its_part() -> None:
    limits = Limits()
    endpoint = shared_endpoint("192.0.2.1", 25, limits)
    assert not endpoint.may_have_more(20, 0.0)
    part = limits.parts[HOST]
    assert part.wishes == 1
    part.size = 2
    for _ in range(2):
        assert endpoint.may_have_more(20, 0.0)
        endpoint.connected()
    assert part.use.used() == 2
    assert not endpoint.may_have_more(20, 0.0)
    assert part.wishes == 2
    assert not endpoint.has_surplus
    part.size = 1
    assert endpoint.has_surplus


def test_at_its_own_limit_a_host_wants_no_more() -> None:
    limits = Limits(first=20)
    endpoint = shared_endpoint("192.0.2.1", 25, limits)
    endpoint.connected()
    assert not endpoint.may_have_more(1, 0.0)
    assert not limits.parts


def test_without_a_limit_nothing_is_asked() -> None:
    limits = Limits()
    endpoint = shared_endpoint("192.0.2.1", 25, limits)
    assert endpoint.may_have_more(NO_LIMIT, 0.0)
    assert not limits.parts
    assert not endpoint.has_surplus


def test_a_socket_of_this_machine_is_no_other_servers() -> None:
    limits = Limits()
    assert shared_endpoint("/run/lmtp", 0, limits).may_have_more(20, 0.0)
    assert not limits.parts


def test_a_limit_of_a_destination_is_one_of_its_own() -> None:
    limits = Limits(first=1)
    endpoint = shared_endpoint("192.0.2.1", 25, limits)
    assert endpoint.may_have_more(20, 0.0)
    assert endpoint.may_have_more(5, 0.0, b"*.mail.example,mail.example")
    assert set(limits.parts) == {HOST, f"{HOST} *.mail.example,mail.example"}


def test_a_part_keeps_no_host_in_memory() -> None:
    limits = Limits(first=1)
    endpoint = shared_endpoint("192.0.2.1", 25, limits)
    endpoint.connected()
    assert endpoint.may_have_more(20, 0.0) is False
    use = limits.parts[HOST].use
    del endpoint
    gc.collect()
    assert use.used() == 0


def rate_of(limits: Limits, messages: int, recipients: int) -> Rate:
    shared = SharedLimits(limits, lambda: 100.0)
    return Rate(messages, recipients, SharedMeters(shared, "mx.b.example 25"))


def test_a_rate_counts_against_its_part() -> None:
    limits = Limits()
    rate = rate_of(limits, 120, 0)
    part = limits.parts["messages mx.b.example 25"]
    assert not rate.may_send(0.0, 1)
    assert part.wishes == 1
    part.size = 3
    sent = 0
    for second in range(100):
        if rate.may_send(float(second), 1):
            rate.note_sent(float(second), 1)
            sent += 1
    assert sent == 5
    assert part.use.used() == 3
    assert (part.use.lasts_s, part.use.is_even) == (61.0, True)
    part.others = 60
    assert rate.of_others == (60, 0)


def test_more_recipients_than_the_part_do_not_go_alone() -> None:
    limits = Limits(first=10)
    rate = rate_of(limits, 0, 60)
    assert not rate.may_send(0.0, 11)
    assert rate.may_send(0.0, 10)
    assert limits.parts["recipients mx.b.example 25"].wishes == 1


def test_a_transaction_fits_a_part_when_there_are_more_servers() -> None:
    limits = Limits(servers=1)
    rate = rate_of(limits, 0, 60)
    assert rate.most_recipients(50) == 30
    limits.servers = 2
    assert rate.most_recipients(50) == 15
    limits.servers = 100
    assert rate.most_recipients(50) == 1


def test_rates_of_sets_and_of_destinations_have_names() -> None:
    limits = Limits()
    of = LimitsOf(deliver_settings(messages_per_minute=60), shared=SharedLimits(limits, lambda: 0.0))
    of.hold(b"b.example", ["mx2.b.example", "mx1.b.example"], 25)
    of.hold(b"", ["/run/lmtp"], 0)
    assert set(limits.parts) == {"messages mx1.b.example,mx2.b.example 25"}


def test_a_long_name_is_cut_and_told_apart() -> None:
    one, other = (name_of_limit("messages", f"{'mx.example,' * 40}{end} 25") for end in ("a", "b"))
    assert one != other
    assert len(one) < MAX_NAME + 50
