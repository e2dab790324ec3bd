"""Each breach of the order of the queue of chunks is seen in a trace, and nothing else is."""

from __future__ import annotations

import attrs
import pytest

from tests.durability.harness.chunk_order import ChunkOrder
from tests.durability.harness.trace import Event, Phase

SPOOL_ID = 0x200000001


def call(name: str, arguments: str, result: int = 0, made: str = "", thread: str = "1") -> list[Event]:
    begun = Event(Phase.BEGIN, 1.0, name, arguments, thread=thread)
    return [begun, attrs.evolve(begun, phase=Phase.END, result=result, made=made)]


STEPS = {
    "create": call("openat", '5</q/pid>, "t", O_RDWR|O_CREAT|O_EXCL', 9, "/q/pid/t"),
    "name": call("linkat", '5</q/pid>, "t", 6</q/mess/2>, "14", 0'),
    "write": call("pwritev", '9</q/pid/t (deleted)>, [{iov_base="content", iov_len=7}], 1, 0', 7),
    "envelope": call("openat", '7</q/intd>, "14", O_RDWR|O_CREAT|O_EXCL', 10, "/q/intd/14"),
    "write envelope": call("pwritev", f'10</q/intd/14>, [{{iov_base=" IA {SPOOL_ID:016X} 1/1 ", iov_len=30}}], 1, 0', 30),
    "sync": call("fdatasync", "9</q/pid/t (deleted)>"),
    "sync envelope": call("fdatasync", "10</q/intd/14>"),
    "sync mess": call("fsync", "11</q/mess/2>"),
    "sync intd": call("fsync", "11</q/intd>"),
    "commit": call("linkat", '7</q/intd>, "14", 8</q/todo>, "14", 0'),
    "sync todo": call("fsync", "11</q/todo>"),
    "answer": call("sendto", f'12<socket:[7]>, "250 2.0.0 Ok: queued as {SPOOL_ID:016X}\\r\\n", 42, 0, NULL, 0', 42),
}


def found(*steps: str) -> list[str]:
    order = ChunkOrder()
    findings = order.feed([event for step in steps for event in STEPS[step]])
    assert findings.answers == ("answer" in steps)
    return findings.breaches


def test_the_whole_order_is_no_breach() -> None:
    assert found(*STEPS) == []


@pytest.mark.parametrize("left_out", ["sync", "sync envelope", "sync mess", "sync intd", "sync todo", "commit", "name"])
def test_a_step_that_is_left_out_is_a_breach(left_out: str) -> None:
    assert found(*(step for step in STEPS if step != left_out)) != []


def test_a_sync_of_the_file_system_covers_all_before_it() -> None:
    STEPS["sync all"] = call("syncfs", "11</q>")
    begin = ("create", "name", "write", "envelope", "write envelope")
    assert found(*begin, "sync all", "commit", "sync all", "answer") == []
    assert found(*begin, "commit", "sync all", "answer") != []


def test_of_two_barriers_at_once_each_covers_what_was_before_its_own_begin() -> None:
    def judge(*between: Event) -> list[str]:
        before = [step for step in STEPS if step not in ("commit", "sync todo", "answer")]
        made = [event for step in before for event in STEPS[step]]
        return ChunkOrder().feed([*made, early[0], *STEPS["commit"], *between, *STEPS["answer"]]).breaches

    early, late = call("fsync", "11</q/todo>", thread="2"), STEPS["sync todo"]
    whole = call("syncfs", "11</q>")
    assert judge(*late) == []
    assert judge(*late, early[1]) == []
    assert judge(*whole, early[1]) == []
    assert judge(late[0], early[1]) != []
    assert judge(early[1]) != []


def test_a_mark_before_its_note_is_durable_is_a_breach() -> None:
    note = [
        *call("openat", '5</q/bounce>, "14", O_RDWR|O_CREAT|O_EXCL', 9, "/q/bounce/14"),
        *call("pwritev", '9</q/bounce/14>, [{iov_base=" BA note", iov_len=8}], 1, 0', 8),
    ]
    mark = call("pwritev", '10</q/remote/2/14>, [{iov_base="x", iov_len=1}], 1, 0', 1)
    syncs = [*call("fdatasync", "9</q/bounce/14>"), *call("fsync", "11</q/bounce>")]
    assert ChunkOrder().feed([*note, *syncs, *mark]).breaches == []
    assert ChunkOrder().feed([*note, *mark, *syncs]).breaches != []
