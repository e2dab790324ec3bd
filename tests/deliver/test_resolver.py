"""The resolver of relay hosts."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.deliver.resolver import FRESH_S, TIMEOUT_S, NameTrouble, Resolver, ask_system
from tests.deliver.harness import Held


class Asking:
    """A resolver whose questions are answered by the test."""

    def __init__(self) -> None:
        self.clock, self.workers = Clock(), Held()
        self.answer: list[str] | Exception = ["192.0.2.1"]
        self.asked: list[str] = []
        self.resolver = Resolver(self.clock, self.clock.seconds, self.workers, self.ask)

    def ask(self, host: str) -> list[str]:
        self.asked.append(host)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def outcome_of(found: list[str] | Deferred[list[str]]) -> list[object]:
    results: list[object] = []
    if isinstance(found, list):
        return [found]
    found.addCallbacks(results.append, lambda failure: results.append(failure.value))
    return results


def test_an_address_needs_no_look_up() -> None:
    asking = Asking()
    assert asking.resolver.addresses("192.0.2.9") == ["192.0.2.9"]
    assert asking.resolver.addresses("2001:db8::1") == ["2001:db8::1"]
    assert asking.workers.waiting == []


def test_many_that_wait_cause_one_look_up_and_the_answer_is_kept_a_while() -> None:
    asking = Asking()
    results = [outcome_of(asking.resolver.addresses("a.example")) for _ in range(5)]
    asking.workers.go_on()
    assert results == [[["192.0.2.1"]]] * 5
    asking.clock.advance(FRESH_S - 1)
    assert asking.resolver.addresses("a.example") == ["192.0.2.1"]
    assert asking.asked == ["a.example"]
    asking.clock.advance(2)
    asking.answer = ["192.0.2.2"]
    result = outcome_of(asking.resolver.addresses("a.example"))
    asking.workers.go_on()
    assert result == [["192.0.2.2"]]


def test_a_look_up_that_hangs_fails_in_time_and_its_late_answer_is_ignored() -> None:
    asking = Asking()
    result = outcome_of(asking.resolver.addresses("a.example"))
    asking.clock.advance(TIMEOUT_S + 1)
    assert isinstance(result[0], NameTrouble)
    asking.workers.go_on()
    with pytest.raises(NameTrouble):
        asking.resolver.addresses("a.example")


def test_an_old_answer_serves_while_the_name_service_is_down() -> None:
    asking = Asking()
    outcome_of(asking.resolver.addresses("a.example"))
    asking.workers.go_on()
    asking.clock.advance(FRESH_S + 1)
    asking.answer = OSError(-3, "Temporary failure in name resolution")
    result = outcome_of(asking.resolver.addresses("a.example"))
    asking.workers.go_on()
    assert result == [["192.0.2.1"]]


@pytest.mark.parametrize("answer", [OSError(-2, "Name or service not known"), [], UnicodeError("label too long")])
def test_a_name_that_fails_is_not_asked_again_at_once(answer: list[str] | Exception) -> None:
    asking = Asking()
    asking.answer = answer
    result = outcome_of(asking.resolver.addresses("a.example"))
    asking.workers.go_on()
    assert isinstance(result[0], NameTrouble)
    with pytest.raises(NameTrouble):
        asking.resolver.addresses("a.example")
    assert asking.asked == ["a.example"]


def test_the_system_knows_localhost() -> None:
    assert set(ask_system("localhost")) & {"127.0.0.1", "::1"}
