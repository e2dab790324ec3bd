"""The operations of the queue, by name: what comes before, the operation, and how long its calls are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from mailismus.queue.interface import Area, Filter, Message
from mailismus.queue.providers.distributed.content.kept import LARGEST
from mailismus.queue.providers.distributed.format.trigger import SHARE_ENTRIES
from tests.contracts.bench import addresses, beyond
from tests.distributed.points.settlements import end, hold, keep_deleted, later, redirected, release
from tests.distributed.points.trial import Trial
from tests.distributed.points.user import CONTENT, LATER_S

Begin = Callable[[Trial], Callable[[], None]]
HOUR, DAY = 3600, 86_400
LARGE = CONTENT * (LARGEST // len(CONTENT) + 1)
THREE = [b"x@d.example", b"y@d.example", b"z@d.example"]
MIXED = [b"x@d.example", b"later@d.example", b"no@d.example", b"later.2@e.example"]
REFUSED = [b"no.1@d.example", b"no.2@d.example"]
FAR_S = 300.0
PASSED_S = 240.0
"""By then the slot of a due row is removed."""


@attrs.frozen
class Workload:
    """An operation of server `a`. `begin`: prepares, and returns what begins the operation. `window_s`: how long its calls
    are looked at."""

    name: str
    begin: Begin
    window_s: float = 4.0
    reports: int | None = None
    """How many reports there are in the end, where it is known."""


# mail comes in


def _commit(*mails: tuple[Sequence[bytes], bytes]) -> Begin:
    def begin(trial: Trial) -> Callable[[], None]:
        trial.start_both()

        def operate() -> None:
            trial.a.send(*mails)

        return operate

    return begin


# mail goes out


def _attempt(recipients: Sequence[bytes], wait_s: float = 0) -> Begin:
    def begin(trial: Trial) -> Callable[[], None]:
        trial.start_both()
        message = trial.hold(trial.a, recipients)
        trial.advance(wait_s)
        return lambda: trial.a.attempt(message)

    return begin


def _attempt_deferred(wait_s: float) -> Begin:
    def begin(trial: Trial) -> Callable[[], None]:
        trial.start_both()
        message = trial.hold_deferred(trial.a, [b"x@d.example", b"later@d.example"])
        trial.advance(wait_s)
        return lambda: trial.a.attempt(message)

    return begin


def _attempt_large(trial: Trial) -> Callable[[], None]:
    """The content came in at the other server: it is read from its store."""
    trial.start_both()
    message = None
    while message is None:
        trial.put(trial.b, content=LARGE)
        trial.advance(1)
        message = next(iter(trial.a.node.take()), None)
        if message is None:
            trial.let_deliver()
    found = message
    return lambda: trial.a.attempt(found)


def _report_two_rounds(trial: Trial) -> Callable[[], None]:
    """Two recipients are refused one after the other; one report tells of both."""
    trial.start_both()
    message = trial.hold(trial.a, REFUSED)
    for entry in message.entries:
        trial.a.attempt(message.with_entries([entry]))
        trial.advance(1)
    return trial.wake


def _due(trial: Trial) -> Callable[[], None]:
    trial.start_both()
    trial.a.attempt(trial.hold(trial.a, [b"later@d.example"]))
    trial.advance(LATER_S - 2)
    return trial.wake


def _redeliver(trial: Trial) -> Callable[[], None]:
    """Its connection to the broker is lost, with mail in its hand."""
    trial.start_both()
    message = trial.hold(trial.a)

    def operate() -> None:
        trial.a.node.clients.broker.lose()
        trial.a.attempt(message)
        trial.wake()

    return operate


def _cut_off(trial: Trial) -> Callable[[], None]:
    """The same while an attempt takes so long that the other server is told meanwhile."""
    trial.start_both()
    message = trial.hold(trial.a)
    trial.advance(7)
    trial.a.wire_s = 40.0

    def operate() -> None:
        trial.a.attempt(message)
        trial.a.node.clients.broker.lose()
        trial.wake()

    return operate


def _give_back(trial: Trial) -> Callable[[], None]:
    trial.start_both()
    message = trial.hold(trial.a, THREE)

    def operate() -> None:
        trial.a.node.queue.give_back(message.queue_ids()[:2], trial.now() + 12)
        trial.a.attempt(message.with_entries(message.entries[2:]))
        trial.wake()

    return operate


# what waits


def _defer_far(trial: Trial) -> Message:
    """Mail of two recipients waits for long."""
    trial.start_both()
    message = trial.hold(trial.a, THREE[:2])
    due_at = trial.now() + FAR_S
    trial.servers.wait(trial.a.node.queue.commit((), [later(one, due_at) for one in message.queue_ids()]))
    trial.advance(1)
    return message


def _flush(trial: Trial) -> Callable[[], None]:
    _defer_far(trial)

    def operate() -> None:
        trial.begin(trial.a, lambda: trial.a.node.queue.visit_all(Filter(), trial.now()))
        trial.wake()

    return operate


def _hasten(trial: Trial) -> Callable[[], None]:
    _defer_far(trial)

    def operate() -> None:
        trial.a.node.queue.hasten(beyond(trial.now() + 10, trial.now()), trial.now())
        trial.wake()

    return operate


def _hold_and_release(trial: Trial) -> Callable[[], None]:
    _defer_far(trial)
    trial.is_helped = True

    def operate() -> None:
        trial.a.act((Area.DEFERRED, hold), (Area.HELD, release))

    return operate


def _delete(trial: Trial) -> Callable[[], None]:
    _defer_far(trial)
    return lambda: trial.a.act((Area.DEFERRED, end))


def _keep_and_undo(trial: Trial) -> Callable[[], None]:
    _defer_far(trial)
    trial.is_helped = True

    def operate() -> None:
        trial.a.act((Area.DEFERRED, keep_deleted), (Area.DELETED, release))

    return operate


def _redirect(trial: Trial) -> Callable[[], None]:
    _defer_far(trial)
    return lambda: trial.a.act((Area.DEFERRED, redirected))


# servers


def _wait_for_leases(trial: Trial) -> Callable[[], None]:
    """Leases are renewed, counts written, claims made in time while an attempt takes long."""
    trial.start_both()
    message = trial.hold(trial.a)
    trial.a.wire_s = 11.0
    return lambda: trial.a.attempt(message)


def _start(trial: Trial) -> Callable[[], None]:
    trial.start("b")
    trial.put(trial.b, [b"later@d.example", b"x@d.example"])

    def operate() -> None:
        trial.open("a")
        trial.wake()

    return operate


def _stop(trial: Trial) -> Callable[[], None]:
    trial.start_both()
    message = trial.hold(trial.a)
    trial.a.attempt(trial.hold(trial.a, REFUSED))
    trial.advance(1)

    def operate() -> None:
        trial.a.node.queue.give_back(message.queue_ids(), trial.now())
        trial.close(trial.a)
        trial.b.is_resting = False

    return operate


def _new_slice(trial: Trial) -> Callable[[], None]:
    """An epoch begins with a new slice."""
    trial.start_both()
    window = trial.a.node.shared.parts.view.writing().slice_window_s
    trial.jump(window - trial.now() % window - 48)
    trial.advance(window - trial.now() % window + 0.1)

    def operate() -> None:
        trial.a.send((THREE, CONTENT))
        trial.wake()

    return operate


def _inherit(trial: Trial) -> Callable[[], None]:
    """A third server dies, that had new mail, claims, what it gave back, and bounces."""
    trial.start_both()
    third = trial.start("c")
    new, given_back = trial.hold(third, THREE), trial.hold(third)
    third.attempt(trial.hold(third, REFUSED))
    third.node.queue.give_back(given_back.queue_ids(), trial.now() + 200)
    trial.advance(7)
    assert new.entries

    def operate() -> None:
        trial.kill(third)
        trial.wake()

    return operate


# queues, slices, contents


def _refill(trial: Trial) -> Callable[[], None]:
    """The broker loses all it had."""
    trial.start_both()
    message = trial.hold(trial.a, THREE)
    trial.a.attempt(trial.hold(trial.a, MIXED))
    trial.advance(1)

    def operate() -> None:
        trial.servers.world.broker.wipe()
        trial.a.attempt(message)
        trial.wake()

    return operate


def _carry(trial: Trial) -> Callable[[], None]:
    """What waits is in a slice that is old."""
    trial.start_both()
    message = trial.hold(trial.a, THREE[:2])
    due_at = trial.now() + DAY + 2 * HOUR + FAR_S
    trial.servers.wait(trial.a.node.queue.commit((), [later(one, due_at) for one in message.queue_ids()]))
    trial.jump(DAY + 2 * HOUR)
    return lambda: trial.begin_coroutine(trial.a, trial.a.node.shared.parts.carrying._look)


def _clean(trial: Trial) -> Callable[[], None]:
    """Slices are removed in which nothing lives."""
    trial.servers.keep_s = HOUR
    trial.start_both()
    trial.a.attempt(trial.hold(trial.a, THREE))
    trial.advance(2)
    trial.jump(4 * HOUR)
    return lambda: trial.begin_coroutine(trial.a, trial.a.node.shared.parts.duties.move_starts)


def _sweep(trial: Trial) -> Callable[[], None]:
    """There is a content that nothing names."""
    trial.start_both()
    trial.put(trial.b)
    day = int(trial.now() // DAY)
    objects = trial.servers.world.objects.objects
    assert objects is not None
    objects[f"mail/{day - 3}/{1:016x}"] = CONTENT
    sweep = trial.a.node.shared.parts.sweep

    async def look() -> None:
        for _ in range(3):
            await sweep.look()

    return lambda: trial.begin_coroutine(trial.a, look)


def _recount(trial: Trial) -> Callable[[], None]:
    """Another server has ended without a word."""
    trial.start_both()
    third = trial.start("c")
    trial.put(third)
    trial.kill(third)
    trial.advance(26)
    return _nothing


def _nothing() -> None:
    """It goes on by itself."""


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("commit-one", _commit((THREE[:1], CONTENT))),
        Workload("commit-many", _commit((THREE, CONTENT))),
        Workload("commit-two-messages", _commit((THREE, CONTENT), (THREE[:1], CONTENT))),
        Workload("commit-two-shares", _commit((addresses(SHARE_ENTRIES + 1), CONTENT))),
        Workload("commit-large", _commit((THREE[:1], LARGE))),
        Workload("deliver-one", _attempt(THREE[:1])),
        Workload("deliver-claimed", _attempt(THREE, wait_s=7)),
        Workload("deliver-large", _attempt_large),
        Workload("deliver-deferred", _attempt_deferred(0)),
        Workload("deliver-behind-its-slot", _attempt_deferred(PASSED_S)),
        Workload("defer", _attempt([b"later@d.example"])),
        Workload("mixed-outcomes", _attempt(MIXED), reports=1),
        Workload("bounce", _attempt(REFUSED), window_s=6, reports=1),
        Workload("report", _report_two_rounds, reports=1),
        Workload("due", _due, window_s=6),
        Workload("redeliver", _redeliver, window_s=40),
        Workload("cut-off", _cut_off, window_s=44),
        Workload("give-back", _give_back, window_s=16),
        Workload("flush", _flush),
        Workload("hasten", _hasten),
        Workload("hold-and-release", _hold_and_release),
        Workload("delete", _delete),
        Workload("delete-and-undo", _keep_and_undo),
        Workload("redirect", _redirect),
        Workload("lease", _wait_for_leases, window_s=13),
        Workload("start", _start),
        Workload("stop", _stop),
        Workload("new-slice", _new_slice),
        Workload("inherit", _inherit, window_s=45),
        Workload("refill", _refill),
        Workload("carry", _carry),
        Workload("clean-up", _clean),
        Workload("sweep", _sweep),
        Workload("recount", _recount, window_s=34),
    )
}
