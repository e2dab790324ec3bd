"""The explorer can fail, and tells why; what is done of a long look is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Settlement
from tests.durability.crash.acts import Kind
from tests.durability.crash.explorer import Explorer, Tally
from tests.durability.crash.fingerprint import fingerprint
from tests.durability.crash.knowledge import Acknowledged, Asked, Broken, Found, Knowledge, Refused, Seen, Sent, Settled
from tests.durability.crash.progress import Progress
from tests.durability.crash.states import Story
from tests.durability.crash.workloads import DEEP, QUICK

ID = SpoolId(5)
ONE, TWO = QueueId(ID, 1), QueueId(ID, 2)
LIVE = Seen(Area.INCOMING, 0, 0.0)
AGAIN = Seen(Area.DEFERRED, 1, 60.0)
RETRY = Settlement(ONE, Area.DEFERRED, 60.0, 1)
DONE = Settlement(ONE, None)
SENT = Sent(ID, b"x", 2)
REPORT = Sent(SpoolId(6), b"r", 1, (ONE,))
REPORT_ID = QueueId(SpoolId(6), 1)


def known(*facts: object) -> Knowledge:
    knowledge = Knowledge()
    for fact in facts:
        knowledge = knowledge.after(fact)
    return knowledge


@pytest.mark.parametrize(
    ("knowledge", "live", "broken"),
    [
        (known(SENT, Acknowledged(ID)), {ONE: LIVE}, "I1"),
        (known(SENT), {ONE: LIVE}, "I4: half"),
        (known(SENT, Refused(ID)), {ONE: LIVE}, "I4: half"),
        (known(SENT, Refused(ID), Found({})), {ONE: LIVE, TWO: LIVE}, "I4: an entry of nobody"),
        (known(), {ONE: LIVE}, "I4: an entry of nobody"),
        (known(SENT, Acknowledged(ID), Asked(DONE), Settled(DONE)), {ONE: LIVE, TWO: LIVE}, "I3"),
        (known(SENT, Acknowledged(ID), Asked(RETRY), Settled(RETRY)), {ONE: LIVE, TWO: LIVE}, "I3"),
        (known(SENT, Acknowledged(ID), Asked(RETRY)), {ONE: AGAIN._replace(due_at=61.0), TWO: LIVE}, "I3"),
        (known(SENT, Found({ONE: LIVE})), {}, "I1"),
        (known(SENT, Acknowledged(ID), Found({ONE: LIVE})), {ONE: LIVE, TWO: LIVE}, "I3"),
        (known(SENT, REPORT), {REPORT_ID: LIVE, ONE: LIVE, TWO: LIVE}, "I7"),
        (known(SENT, Acknowledged(ID), REPORT, Asked(DONE)), {TWO: LIVE}, "I7"),
        (known(SENT, Acknowledged(ID), REPORT, Asked(DONE), Refused(SpoolId(6))), {TWO: LIVE}, "I7"),
    ],
)
def test_what_may_not_be_found_is_said(knowledge: Knowledge, live: dict[QueueId, Seen], broken: str) -> None:
    with pytest.raises(Broken, match=broken):
        knowledge.check(live, {ID: b"x", SpoolId(6): b"r"})


@pytest.mark.parametrize(
    ("knowledge", "live"),
    [
        (known(SENT), {}),
        (known(SENT), {ONE: LIVE, TWO: LIVE}),
        (known(SENT, Refused(ID)), {ONE: LIVE, TWO: LIVE}),
        (known(SENT, Acknowledged(ID), Asked(DONE)), {ONE: LIVE, TWO: LIVE}),
        (known(SENT, Acknowledged(ID), Asked(DONE)), {TWO: LIVE}),
        (known(SENT, Acknowledged(ID), Asked(RETRY)), {ONE: AGAIN, TWO: LIVE}),
        (known(SENT, Acknowledged(ID), Asked(RETRY)), {ONE: LIVE, TWO: LIVE}),
        (known(SENT, Acknowledged(ID), REPORT, Asked(DONE)), {REPORT_ID: LIVE, TWO: LIVE}),
        (known(SENT, Acknowledged(ID), REPORT, Asked(DONE), Refused(SpoolId(6))), {REPORT_ID: LIVE, TWO: LIVE}),
    ],
)
def test_what_may_be_found_is_not(knowledge: Knowledge, live: dict[QueueId, Seen]) -> None:
    knowledge.check(live, {ID: b"x", SpoolId(6): b"r"})


def test_other_bytes_are_none() -> None:
    with pytest.raises(Broken, match="I2"):
        known(SENT).check({ONE: LIVE, TWO: LIVE}, {ID: b"y"})


def test_a_missing_barrier_is_found() -> None:
    """Without the journal's barriers the same workload loses mail."""
    explorer = Explorer()
    world, first = explorer.run(("store",))
    acts = [act for at, act in enumerate(world.disk.acts) if at < first or act.kind is not Kind.SYNC]
    with pytest.raises(Broken, match=r"I1: .* is lost\nworkload: unsynced; POSIX; crash after act \d+"):
        explorer.explore_story(Story(acts), first, QUICK, "unsynced")


def test_a_crash_inside_the_start_is_looked_at() -> None:
    shallow = Explorer().explore(("store",), QUICK)
    deep = Explorer().explore(("store",), DEEP)
    assert deep.crashes > 2 * shallow.crashes


def test_what_is_done_is_kept_while_the_code_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "down" / "store.done"
    Progress(path, "code").add("store, deliver", Tally(1, 20, 10, 0))
    path.write_text(path.read_text() + "store, bou")
    again = Progress(path, "code")
    assert again.done == {"store, deliver": Tally(1, 20, 10, 0)}
    assert again.before == 1
    assert Progress(path, "other code").done == {}
    assert Progress(path, "code").done == {}
    assert Progress(None, "code").done == {}


def test_the_fingerprint_tells_code_from_other_code(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("a = 1\n")
    before = fingerprint([path])
    path.write_text("a = 2\n")
    assert fingerprint([path]) != before
    assert fingerprint() == fingerprint()
