"""A server whose stores fail: what it still does, what clients hear at once, and how it goes on."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import formatEvent
from twisted.python.failure import Failure

from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Settlement, Submission
from mailismus.queue.providers.distributed.circuits.circuit import FAILURES, Circuit
from mailismus.queue.providers.distributed.format.tables import DUE, ENQUEUED
from mailismus.queue.providers.distributed.metrics import METRICS, DistributedFigures
from tests.contracts.bench import CONTENT, LATER_REPLY
from tests.distributed.models.fates import Fate, Fates
from tests.distributed.servers import Node, Servers
from tests.fakes.events import Events

ANSWER_S = 15.0
OBJECTS, ROWS, BROKER = range(3)
NAMES = ("objects", "cassandra", "rabbitmq")


class Trouble:
    """A server, its stores, and what it logs."""

    def __init__(self) -> None:
        self.servers = Servers()
        self.node = self.servers.start("mx")
        self.parts = self.node.shared.parts

    def start_again(self) -> None:
        self.node.kill()
        self.node = self.servers.start("mx")
        self.parts = self.node.shared.parts
        self.servers.advance(2)

    @property
    def fates(self) -> tuple[Fates, Fates, Fates]:
        return self.node.clients.fates

    def offer(self) -> tuple[Submission, list[object]]:
        """A message whose final dot has come, and the answer."""
        submission = self.node.submission()
        answers: list[object] = []
        self.node.queue.commit([submission], []).addBoth(answers.append)
        return submission, answers

    def open_circuit(self, place: int) -> None:
        """The store is away, and a server has noticed."""
        self.fates[place].is_away = True
        circuit = self.circuit(place)
        for _ in range(40):
            if not circuit.is_closed:
                return
            self.servers.advance(1)
            asked = (self.parts.stores.objects.is_there, self.parts.stores.rows.now, lambda: self._tell())[place]
            asked().addErrback(lambda _: None)
        raise AssertionError("it stays closed")

    def _tell(self) -> Deferred[None]:
        return self.parts.stores.broker.tell("mq.probe", b"")

    def circuit(self, place: int) -> Circuit:
        circuits = self.parts.circuits
        return (circuits.objects, circuits.rows, circuits.broker)[place]

    def mend(self, place: int) -> None:
        self.fates[place].is_away = self.fates[place].is_full = self.fates[place].is_silent = False

    def metric(self, name: str) -> object:
        (found,) = [metric for metric in METRICS if metric.name == name]
        return found.read(self.node.shared)


def is_durable(answers: list[object]) -> bool:
    """Whether a commit has ended well."""
    (answer,) = answers
    return not isinstance(answer, Failure)


@pytest.fixture
def trouble() -> Trouble:
    return Trouble()


@pytest.mark.parametrize("place", [OBJECTS, ROWS])
def test_without_database_or_contents_mail_is_refused_at_once(trouble: Trouble, place: int) -> None:
    trouble.open_circuit(place)
    begun, calls = trouble.servers.now(), [list(fates.calls) for fates in trouble.fates]
    with pytest.raises(Unavailable) as refused:
        trouble.node.queue.draft()
    assert not refused.value.full
    assert NAMES[place] in str(refused.value)
    assert trouble.servers.now() == begun
    assert [fates.calls for fates in trouble.fates] == calls
    assert DistributedFigures(trouble.node.shared).refusals()[NAMES[place]]
    trouble.mend(place)
    trouble.servers.advance(12)
    trouble.node.put()
    assert not any(DistributedFigures(trouble.node.shared).refusals().values())


def test_a_full_object_store_is_said_to_be_full_and_gives_what_it_has(trouble: Trouble) -> None:
    spool_id = trouble.node.put()
    trouble.start_again()  # without contents in memory
    trouble.fates[OBJECTS].is_full = True
    _, answers = trouble.offer()
    trouble.servers.advance(1)
    (failure,) = answers
    assert failure.value.full  # type: ignore[attr-defined]
    with pytest.raises(Unavailable) as refused:
        trouble.node.queue.draft()
    assert refused.value.full
    (taken,) = trouble.node.take_ids()
    assert trouble.node.may_try(taken)
    assert trouble.node.read(spool_id) == CONTENT
    assert trouble.node.remove([taken]) == [spool_id]
    trouble.servers.advance(30)
    assert not trouble.circuit(OBJECTS).is_closed
    trouble.mend(OBJECTS)
    trouble.servers.advance(6)
    trouble.node.put()
    assert not [key for key in trouble.servers.world.objects.objects or () if key.startswith("probe/")]


def test_a_full_database_is_said_to_be_full_and_nothing_is_begun_whose_outcome_it_could_not_take(trouble: Trouble) -> None:
    spool_ids = {trouble.node.put() for _ in range(3)}
    taken, jobs = trouble.node.take_ids(limit=1), trouble.node.take_ids(limit=1)
    trouble.fates[ROWS].is_full = True
    _, answers = trouble.offer()
    done: list[object] = []
    trouble.node.queue.commit([], [Settlement(taken[0], None)]).addBoth(done.append)
    trouble.servers.advance(1)
    (failure,) = answers
    assert failure.value.full  # type: ignore[attr-defined]
    with pytest.raises(Unavailable) as refused:
        trouble.node.queue.draft()
    assert refused.value.full
    assert trouble.node.queue.withheld() == "cassandra has no room"
    assert trouble.node.take_ids() == []
    assert not trouble.node.may_try(jobs[0])
    trouble.servers.advance(60)
    assert done == []
    trouble.mend(ROWS)
    trouble.servers.advance(30)
    assert done == [[taken[0].spool_id]]
    trouble.node.put()
    trouble.node.queue.give_back(jobs, trouble.node.now())
    trouble.servers.advance(60)
    left = spool_ids - {taken[0].spool_id}
    assert {queue_id.spool_id for queue_id in trouble.node.take_ids()} > left


def test_without_the_broker_mail_is_accepted_by_rows_at_once(trouble: Trouble) -> None:
    trouble.open_circuit(BROKER)
    before, published = trouble.servers.now(), trouble.fates[BROKER].calls.count("publish")
    trouble.node.put()
    assert trouble.servers.now() - before < 1
    assert trouble.fates[BROKER].calls.count("publish") == published
    found = trouble.servers.wait(trouble.servers.world.server().rows.all_rows(DUE))
    assert len(found) == 1
    assert trouble.node.take_ids() == []
    trouble.mend(BROKER)
    trouble.servers.advance(60)
    assert len(trouble.node.take_ids()) == 1


@pytest.mark.parametrize("place", [OBJECTS, ROWS])
def test_nothing_is_handed_out_or_begun_until_it_is_back(trouble: Trouble, place: int) -> None:
    first, second = trouble.node.put(), trouble.node.put()
    (taken,) = trouble.node.take_ids(limit=1)
    trouble.open_circuit(place)
    assert trouble.node.take_ids() == []
    assert not trouble.node.may_try(taken)
    assert trouble.node.queue.withheld() == f"{NAMES[place]} does not work"
    ready: list[object] = []
    trouble.node.queue.ready(Area.INCOMING).addBoth(ready.append)
    trouble.servers.advance(3)
    assert ready == []
    trouble.mend(place)
    trouble.servers.advance(12)
    assert ready == [None]
    assert trouble.node.queue.withheld() == ""
    assert trouble.node.may_try(taken)
    assert {taken.spool_id, *(queue_id.spool_id for queue_id in trouble.node.take_ids())} == {first, second}


def test_a_lease_that_is_sure_again_lets_mail_go_on(trouble: Trouble) -> None:
    spool_id = trouble.node.put()
    trouble.fates[ROWS].is_away = True
    while trouble.parts.lease.is_sure:
        trouble.servers.advance(1)
    ready: list[object] = []
    trouble.node.queue.ready(Area.INCOMING).addBoth(ready.append)
    trouble.mend(ROWS)
    trouble.servers.advance(4)
    assert ready == [None]
    assert [queue_id.spool_id for queue_id in trouble.node.take_ids()] == [spool_id]


def test_a_database_that_is_read_and_takes_no_write_is_not_well(trouble: Trouble) -> None:
    trouble.fates[ROWS].plan(*[Fate.NOT_DONE] * 100, call="write")
    while trouble.circuit(ROWS).is_closed:
        _, answers = trouble.offer()
        trouble.servers.advance(0.2)
        assert not is_durable(answers)
    trouble.servers.advance(9)
    assert not trouble.circuit(ROWS).is_closed
    assert trouble.circuit(ROWS).openings == 1
    trouble.fates[ROWS].forget()
    trouble.servers.advance(3)
    trouble.node.put()


def test_outcomes_wait_as_long_as_the_database_is_away(trouble: Trouble) -> None:
    spool_id = trouble.node.put()
    taken = trouble.node.take_ids()
    trouble.fates[ROWS].is_away = True
    done: list[object] = []
    trouble.node.queue.commit([], [Settlement(taken[0], None)]).addBoth(done.append)
    trouble.servers.advance(3600)
    assert done == []
    trouble.mend(ROWS)
    trouble.servers.advance(15)
    assert done == [[spool_id]]


@pytest.mark.parametrize("place", [OBJECTS, ROWS, BROKER])
def test_a_client_has_its_answer_within_15_s_of_the_final_dot(trouble: Trouble, place: int) -> None:
    trouble.fates[place].is_silent = True
    begun = trouble.servers.now()
    submission, answers = trouble.offer()
    while not answers and trouble.servers.now() < begun + 60:
        trouble.servers.advance(0.25)
    assert trouble.servers.now() - begun <= ANSWER_S
    is_accepted = is_durable(answers)
    assert is_accepted == (place == BROKER)
    trouble.mend(place)
    trouble.servers.advance(120)
    taken = [queue_id.spool_id for queue_id in trouble.node.take_ids()]
    assert taken == ([submission.draft.spool_id] if is_accepted else [])


@pytest.mark.parametrize("places", [(OBJECTS, ROWS), (OBJECTS, BROKER), (ROWS, BROKER), (OBJECTS, ROWS, BROKER)])
@pytest.mark.parametrize("fates", [[Fate.LATE, Fate.LATE], [Fate.NEVER], [Fate.UNANSWERED, Fate.NOT_DONE]])
def test_nor_where_several_stores_are_slow(trouble: Trouble, places: tuple[int, ...], fates: list[Fate]) -> None:
    for place in places:
        trouble.fates[place].plan(*fates, call=("put", "write", "publish")[place])
    begun = trouble.servers.now()
    submission, answers = trouble.offer()
    while not answers and trouble.servers.now() < begun + 60:
        trouble.servers.advance(0.25)
    assert trouble.servers.now() - begun <= ANSWER_S
    for one in trouble.fates:
        one.do_late()
    trouble.servers.advance(120)
    taken = [queue_id.spool_id for queue_id in trouble.node.take_ids()]
    assert taken == ([submission.draft.spool_id] if is_durable(answers) else [])


def test_time_is_left_for_a_row_where_the_broker_is_silent_behind_a_slow_put(trouble: Trouble) -> None:
    trouble.fates[OBJECTS].plan(Fate.UNANSWERED, call="put")
    trouble.fates[BROKER].is_silent = True
    _, answers = trouble.offer()
    trouble.servers.advance(ANSWER_S - 2)
    assert is_durable(answers)


def test_what_was_refused_is_not_delivered_when_its_rows_come_late(trouble: Trouble) -> None:
    trouble.fates[ROWS].plan(*[Fate.LATE] * 8, call="write")
    _, answers = trouble.offer()
    trouble.servers.advance(16)
    assert not is_durable(answers)
    for fates in trouble.fates:
        fates.forget()
        fates.do_late()
    trouble.servers.advance(120)
    assert trouble.servers.wait(trouble.servers.world.server().rows.all_rows(ENQUEUED))
    assert trouble.node.search() == []
    assert trouble.node.take_ids() == []


@pytest.mark.parametrize("place", [OBJECTS, ROWS, BROKER])
def test_both_ends_are_told_by_the_log_and_a_metric(place: int) -> None:
    with Events() as found:
        trouble = Trouble()
        trouble.open_circuit(place)
        assert trouble.metric("mailismus_distributed_circuit_open") == {(name,): int(name == NAMES[place]) for name in NAMES}
        trouble.servers.advance(9)
        trouble.mend(place)
        trouble.servers.advance(12)
    texts = [formatEvent(event) for event in found]
    begins = [text for text in texts if "is left alone until it answers a probe" in text]
    ends = [text for text in texts if "answers again, after" in text]
    assert len(begins) == len(ends) == 1
    assert begins[0].startswith(NAMES[place])
    assert trouble.metric("mailismus_distributed_circuit_open") == {(name,): 0 for name in NAMES}
    assert trouble.metric("mailismus_distributed_circuit_openings_total") == {
        (name,): int(name == NAMES[place]) for name in NAMES
    }


def test_a_store_that_is_left_alone_gets_one_probe_a_second_at_most(trouble: Trouble) -> None:
    trouble.open_circuit(OBJECTS)
    before = len(trouble.fates[OBJECTS].calls)
    trouble.servers.advance(30)
    assert 15 <= len(trouble.fates[OBJECTS].calls) - before <= 31


def test_a_single_failure_changes_nothing(trouble: Trouble) -> None:
    for _ in range(3):
        trouble.fates[ROWS].plan(*[Fate.NOT_DONE] * (FAILURES - 1), call="now")
        for _ in range(FAILURES - 1):
            trouble.parts.stores.rows.now().addErrback(lambda _: None)
        trouble.servers.advance(0.1)
        trouble.node.put()
    assert trouble.parts.circuits.rows.openings == 0


def test_the_lease_outlasts_a_short_absence_of_the_database(trouble: Trouble) -> None:
    trouble.node.put()
    epoch = trouble.parts.lease.epoch
    trouble.open_circuit(ROWS)
    trouble.servers.advance(8)
    trouble.mend(ROWS)
    trouble.servers.advance(5)
    assert trouble.parts.lease.is_sure
    assert trouble.parts.lease.epoch == epoch
    assert len(trouble.node.take_ids()) == 1


def test_two_servers_without_database_double_nothing(trouble: Trouble) -> None:
    other = trouble.servers.start("other")
    put = {trouble.node.put() for _ in range(6)}
    at_first, at_other = trouble.node.take_ids(), other.take_ids()
    for node in (trouble.node, other):
        node.clients.rows.fates.is_away = True
    trouble.servers.advance(90)
    assert not any(map(trouble.node.may_try, at_first))
    assert not any(map(other.may_try, at_other))
    for node in (trouble.node, other):
        node.clients.rows.fates.is_away = False
    trouble.servers.advance(90)
    delivered: list[SpoolId] = []
    for node in (trouble.node, other):
        node.queue.give_back([*at_first] if node is trouble.node else [*at_other], node.now())
    trouble.servers.advance(90)
    for node in (trouble.node, other):
        delivered += [queue_id.spool_id for queue_id in _deliver(node)]
    assert sorted(delivered) == sorted(put)


def _deliver(node: Node) -> list[QueueId]:
    tried = [queue_id for queue_id in node.take_ids() if node.may_try(queue_id)]
    node.remove(tried)
    return tried


def test_a_deferral_waits_for_the_database_too(trouble: Trouble) -> None:
    trouble.node.put()
    (taken,) = trouble.node.take_ids()
    trouble.open_circuit(ROWS)
    done: list[object] = []
    settled = Settlement(taken, Area.DEFERRED, trouble.node.now() + 100, 1, LATER_REPLY)
    trouble.node.queue.commit([], [settled]).addBoth(done.append)
    trouble.servers.advance(8)
    assert done == []
    trouble.mend(ROWS)
    trouble.servers.advance(5)
    assert is_durable(done)
    trouble.servers.advance(100)
    assert trouble.node.take_ids(Area.DEFERRED) == [taken]
