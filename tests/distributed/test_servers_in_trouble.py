"""Servers that stand still, die, lose their broker or hear no answers: nothing is lost, and nothing is delivered twice but
what was on the wire of a server in such trouble, or had been delivered by one that was killed before the outcome was
durable: its mark is not in the database at that moment, because a call of that server for the database has failed a moment
before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailismus.errors import StorageError
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.distributed.format.marks import WHOLE
from mailismus.queue.providers.distributed.format.share import ShareName
from mailismus.queue.providers.distributed.format.tables import DELETED
from mailismus.queue.providers.distributed.identity.claims import ClaimAnswer, Claims
from mailismus.queue.providers.distributed.provider import DistributedQueue
from mailismus.queue.providers.distributed.settle import settling
from tests.contracts.bench import LATER_REPLY, addresses
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Node, Servers

NAMES = ("a", "b")
FORGOTTEN_TURNS = 60
"""Until new mail that was never acknowledged, and whose server was killed before its trigger was durable, comes all the
same."""
ASKED_AGAIN_S = 3.0
"""Behind a call that has failed, until the same outcome is surely asked for again, and durable."""
ACTS = st.one_of(
    st.tuples(st.sampled_from(["put", "take", "deliver", "defer", "give back", "kill", "lose"]), st.sampled_from(NAMES)),
    st.tuples(st.just("wait"), st.sampled_from([1, 4, 7, 12, 25, 40])),
    st.tuples(st.just("wipe"), st.sampled_from(NAMES)),
    st.tuples(st.just("away"), st.sampled_from(NAMES), st.integers(0, 2), st.sampled_from([2, 5, 15, 24, 35, 60])),
    st.tuples(st.just("freeze"), st.sampled_from(NAMES), st.sampled_from([6, 15, 24, 28, 35, 60])),
    st.tuples(
        st.just("trouble"),
        st.sampled_from(NAMES),
        st.integers(0, 2),
        st.lists(st.sampled_from(list(Fate)), min_size=1, max_size=3),
    ),
)


@attrs.define(eq=False)
class Attempt:
    """An entry on the wire of a server. `is_disturbed`: the server was in trouble meanwhile; also if its lease ended."""

    name: str
    queue_id: QueueId
    epoch: int
    """Of the server's lease when it began."""
    is_disturbed: bool = False

    def disturb(self) -> None:
        self.is_disturbed = True


@attrs.frozen
class Outcome:
    """An entry that a server has delivered, and its share, in which the mark is to stand."""

    name: str
    queue_id: QueueId
    share: ShareName


class Trial:
    """Two servers, what is on their wires, and what was delivered."""

    def __init__(self) -> None:
        self.servers = Servers()
        self.nodes = {name: self.servers.start(name) for name in NAMES}
        self.held: dict[str, list[QueueId]] = {name: [] for name in NAMES}
        """Jobs: taken, and not begun."""
        self.attempts: list[Attempt] = []
        self.put: set[QueueId] = set()
        self.delivered: Counter[QueueId] = Counter()
        self.allowed: Counter[QueueId] = Counter()
        """Attempts of each entry that were disturbed, and outcomes that were not durable when their server was killed."""
        self.outcomes: list[Outcome] = []

    def act(self, kind: str, name: str, *more: object) -> None:
        node = self.nodes[name]
        if kind == "put":
            self._put(node)
        elif kind == "take":
            self._take(name)
        elif kind == "give back":
            self._give_back(name)
        elif kind in ("deliver", "defer"):
            self._end(name, is_delivered=kind == "deliver")
        elif kind == "kill":
            self._disturb(name)
            node.kill()
            self._forget_outcomes(name)
            self.held[name].clear()
            self.attempts = [one for one in self.attempts if one.name != name]
            self.servers.advance(1)
            self.nodes[name] = self.servers.start(name)
        elif kind == "lose":
            self._disturb(name)
            node.clients.broker.lose()
        elif kind == "freeze":
            (seconds,) = more
            assert isinstance(seconds, int)
            self._disturb(name)
            node.freeze(self.servers, seconds)
            node.host.thaw()
        elif kind == "wipe":
            for each in NAMES:
                self._disturb(each)
            self.servers.world.broker.wipe()
        elif kind == "away":
            place, seconds = more
            assert isinstance(place, int)
            assert isinstance(seconds, int)
            self._be_away(name, place, seconds)
        else:
            place, fates = more
            assert isinstance(place, int)
            assert isinstance(fates, list)
            node.clients.fates[place].plan(*fates)

    def _be_away(self, name: str, place: int, seconds: int) -> None:
        """A server can't reach a store for so long. If it has lost its lease by that, what it could not write may be
        delivered once more."""
        node = self.nodes[name]
        epoch, fates = node.shared.parts.lease.epoch, node.clients.fates[place]
        self._disturb(name)
        fates.is_away = True
        self.servers.advance(seconds)
        fates.is_away = False
        if not node.shared.parts.lease.is_sure or node.shared.parts.lease.epoch != epoch:
            self._forget_outcomes(name)

    def _put(self, node: Node) -> None:
        told: list[object] = []
        try:
            submission = node.submission(addresses(2))
        except StorageError:
            return
        spool_id = submission.draft.spool_id
        node.queue.commit([submission], []).addBoth(told.append)
        self.servers.advance(1)
        self.put |= {QueueId(spool_id, 1), QueueId(spool_id, 2)}
        if told != [[]]:  # it may come all the same
            self.put -= {QueueId(spool_id, 1), QueueId(spool_id, 2)}

    def _take(self, name: str) -> None:
        node = self.nodes[name]
        self.held[name] += [*node.take_ids(), *node.take_ids(Area.DEFERRED)]
        self._begin(name)

    def _begin(self, name: str) -> None:
        """Every second job begins, the others wait in memory."""
        node, waiting = self.nodes[name], []
        for number, queue_id in enumerate(self.held[name]):
            if number % 2:
                waiting.append(queue_id)
            elif node.may_try(queue_id):
                self.attempts.append(Attempt(name, queue_id, node.shared.parts.lease.epoch))
            else:
                node.queue.give_back([queue_id], node.now())
        self.held[name] = waiting

    def _give_back(self, name: str) -> None:
        node, held = self.nodes[name], self.held[name]
        node.queue.give_back(held, node.now() + 8)
        held.clear()

    def _end(self, name: str, *, is_delivered: bool) -> None:
        node = self.nodes[name]
        for attempt in [one for one in self.attempts if one.name == name]:
            self.attempts.remove(attempt)
            queue_id = attempt.queue_id
            if is_delivered:
                self.delivered[queue_id] += 1
                lease = node.shared.parts.lease
                self.allowed[queue_id] += attempt.is_disturbed or lease.epoch != attempt.epoch or not lease.is_sure
                self._note_outcome(name, queue_id)
            area = None if is_delivered else Area.DEFERRED
            node.queue.commit([], [Settlement(queue_id, area, node.now() + 15, 1, LATER_REPLY)])
        self.servers.advance(0.01)
        self._begin(name)

    def _note_outcome(self, name: str, queue_id: QueueId) -> None:
        known = self.nodes[name].shared.parts.hand.index.messages.get(queue_id.spool_id)
        held = None if known is None else known.shares.get(queue_id.number)
        if held is not None:
            self.outcomes.append(Outcome(name, queue_id, held.name))

    def _forget_outcomes(self, name: str) -> None:
        """A server was killed, or cut off for long: what it had delivered, and could not make durable, may be delivered once
        more."""
        until = self.nodes[name].clients.rows.fates.troubled_until + ASKED_AGAIN_S
        is_explained = self.servers.now() <= until
        for outcome in [one for one in self.outcomes if one.name == name]:
            self.outcomes.remove(outcome)
            self.allowed[outcome.queue_id] += is_explained and not self._is_durable(outcome)

    def _is_durable(self, outcome: Outcome) -> bool:
        share, numbers = outcome.share, (WHOLE, outcome.queue_id.number)
        marks = (self.servers.world.rows.seen(DELETED, (*share.place.key, share.enqueue_id, number)) for number in numbers)
        return any(mark is not None and mark["done_at"] is not None for mark in marks)

    def _disturb(self, name: str) -> None:
        for attempt in self.attempts:
            if attempt.name == name:
                attempt.disturb()

    def drain(self) -> None:
        """All is delivered, without further trouble."""
        for _ in range(2):
            for name in NAMES:
                self._end(name, is_delivered=True)
                self._end(name, is_delivered=True)
        for turn in range(14 + FORGOTTEN_TURNS):
            if turn >= 14 and not any(node.search() for node in self.nodes.values()):
                break
            self.servers.advance(15)
            for name in NAMES:
                self._take(name)
                self._end(name, is_delivered=True)
                self._end(name, is_delivered=True)
            for node in self.nodes.values():
                for fates in node.clients.fates:
                    fates.do_late()

    def check(self) -> None:
        for node in self.nodes.values():
            assert node.search() == []
        assert not self.put - self.delivered.keys(), "lost"
        twice = {queue_id for queue_id, count in self.delivered.items() if count > 1 + self.allowed[queue_id]}
        assert not twice, "delivered twice"


Course = Sequence[tuple[object, ...]]


def run(acts: Course) -> None:
    trial = Trial()
    for kind, *given_ in acts:
        if kind == "wait":
            (seconds,) = given_
            assert isinstance(seconds, int)
            trial.servers.advance(seconds)
        else:
            name, *more = given_
            trial.act(str(kind), str(name), *more)
    trial.drain()
    trial.check()


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(ACTS, min_size=4, max_size=16))
def test_nothing_is_lost_and_nothing_doubled_but_what_was_on_the_wire(acts: list[tuple[object, ...]]) -> None:
    run([("put", "a"), ("put", "b"), *acts])


def test_a_server_that_stood_still_begins_to_consume_once() -> None:
    run(
        [
            *(("put", "a"), ("put", "b"), ("freeze", "a", 6), ("freeze", "b", 24)),
            *(("put", "a"), ("put", "a"), ("put", "a"), ("freeze", "b", 15), ("freeze", "b", 15)),
        ]
    )


REFUSED_ONCE = [*(("put", "a"), ("put", "b"), ("take", "b"), ("trouble", "b", 1, [Fate.NOT_DONE]), ("deliver", "b"))]
"""The database refuses the outcome of a delivery, which is asked again a second later."""
NOT_ASKED_AGAIN = [*REFUSED_ONCE, ("wait", 4), ("kill", "b")]
STOOD_STILL = [
    *(("put", "a"), ("put", "b"), ("take", "a"), ("freeze", "a", 60), ("take", "b"), ("deliver", "b"), ("deliver", "b")),
    *(("wait", 4), ("deliver", "a"), ("deliver", "a")),
]
"""A job waits in the memory of a server that stands still; another one delivers it meanwhile."""
CUT_OFF = [*(("put", "a"), ("put", "b"), ("put", "a"), ("put", "a"), ("wait", 4), ("lose", "a"))]
"""Triggers are delivered again, to another server than that which has claimed the shares meanwhile."""


def test_an_outcome_that_is_not_durable_at_a_kill_may_be_repeated() -> None:
    run([*REFUSED_ONCE, ("kill", "b")])


@pytest.mark.parametrize("course", [STOOD_STILL, CUT_OFF, NOT_ASKED_AGAIN])
def test_the_courses_of_the_next_tests_double_nothing(course: Course) -> None:
    run(course)


def test_without_the_question_before_each_attempt_the_trial_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DistributedQueue, "may_try", lambda queue, spool_id: True)
    with pytest.raises(AssertionError, match="delivered twice"):
        run(STOOD_STILL)


def test_without_claims_the_trial_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def claim(claims: Claims, share: object) -> ClaimAnswer:
        return ClaimAnswer.NONE

    monkeypatch.setattr(Claims, "claim", claim)
    with pytest.raises(AssertionError, match="delivered twice"):
        run(CUT_OFF)


def test_where_a_refused_outcome_is_not_asked_again_the_trial_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "PAUSE_S", 3600.0)
    with pytest.raises(AssertionError, match="delivered twice"):
        run(NOT_ASKED_AGAIN)


def test_a_share_with_several_rows_that_are_early_is_published_by_its_heir() -> None:
    run(
        [
            *(("take", "a"), ("wait", 40), ("take", "a"), ("defer", "a"), ("freeze", "a", 6), ("wait", 12), ("kill", "a")),
            *(("wait", 2), ("put", "a"), ("put", "a"), ("put", "a"), ("kill", "b"), ("put", "a"), ("put", "a")),
            *(("put", "a"), ("kill", "a"), ("wait", 27), ("kill", "b"), ("wait", 25), ("deliver", "b"), ("wait", 1)),
            ("freeze", "b", 24),
        ]
    )


@pytest.mark.exhaustive
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(ACTS, min_size=4, max_size=25))
def test_the_same_with_many_courses(acts: list[tuple[object, ...]]) -> None:
    run([("put", "a"), ("put", "b"), *acts])
