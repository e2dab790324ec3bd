"""A profile's samples end in the right part of the hot-path budget."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import pytest

from benchmarks.measure import budget
from benchmarks.measure.budget import Profile, budget_table, part_of_stack, receives, shares, thread_shares
from benchmarks.results.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parent.parent.parent
REACTOR = "EPollReactor.doPoll (twisted/internet/epollreactor.py:244)"
DO_READ = "Connection.doRead (twisted/internet/tcp.py:250)"


@pytest.mark.parametrize(
    ("frames", "part"),
    [
        ([REACTOR], budget.REST),
        ([], budget.REST),
        ([REACTOR, DO_READ], budget.RECEIVE),
        ([REACTOR, DO_READ, "Session.dataReceived (mailismus/submit/protocol.py:76)"], budget.COMMANDS),
        ([REACTOR, "x (mailismus/submit/protocol.py:1)", "send_now (mailismus/net/send.py:30)"], budget.COMMANDS),
        (
            [REACTOR, "x (/opt/lib/mailismus/submit/protocol.py:1)", "Policy.check (/opt/lib/mailismus/submit/policy.py:3)"],
            budget.POLICY,
        ),
        (["x (mailismus/deliver/sessions/protocol.py:1)", "send_now (mailismus/net/send.py:30)"], budget.CLIENT),
        (["Session.connectionLost (mailismus/submit/protocol.py:88)"], budget.CONNECTION),
        (
            [
                "QueueManager.take (mailismus/queue/manager.py:116)",
                "ClusteredQueue.take (mailismus/queue/providers/clustered/provider.py:3)",
            ],
            budget.QUEUE,
        ),
        (["QueueManager.settle (mailismus/queue/manager.py:193)"], budget.SETTLE),
        (["GroupCommit._write (mailismus/journal/commit.py:122)", "deque.append (collections.py)"], budget.JOURNAL),
        (["Port.doRead (twisted/internet/tcp.py:1400)", "socket.accept (socket.py:295)"], budget.CONNECTION),
    ],
)
def test_the_innermost_frame_with_a_rule_decides(frames: list[str], part: str) -> None:
    assert part_of_stack(frames) == part


def test_every_rule_about_our_modules_matches_a_module() -> None:
    modules = [str(path.relative_to(ROOT)) for path in (ROOT / "mailismus").rglob("*.py")]
    unused = [
        module for module, _, _ in budget.RULES if module.startswith("mailismus/") and not fnmatch.filter(modules, module)
    ]
    assert unused == []


def test_a_thread_weighs_what_it_used_and_not_how_often_it_was_seen() -> None:
    profile = Profile.parse(
        [
            f"thread (10): MainThread;{REACTOR};Session.connectionLost (mailismus/submit/protocol.py:88) 30",
            f"thread (10): MainThread;{REACTOR} 10",
            "thread (11): disk;Worker.run (mailismus/disk/worker.py:30) 1000",
        ]
    )
    found = shares(profile, {10: 3.0, 11: 1.0}, WORKLOADS["W1"])
    assert found[budget.JOURNAL] == pytest.approx(0.25)
    assert found[budget.CONNECTION] == pytest.approx(0.75 * 0.75)
    assert found[budget.REST] == pytest.approx(0.25 * 0.75)
    assert sum(found.values()) == pytest.approx(1)
    assert thread_shares(profile, {10: 3.0, 11: 1.0, 12: 0.0}) == "MainThread 75%, disk 25%"


def test_receiving_is_shared_out_by_the_receives_of_the_workload() -> None:
    workload = WORKLOADS["W2"]
    found = shares(Profile.parse([f"thread (10): MainThread;{DO_READ} 5"]), {10: 1.0}, workload)
    needs = receives(workload)
    assert needs[budget.COMMANDS] == 3
    for part, number in needs.items():
        assert found[part] == pytest.approx(number / sum(needs.values()))


def test_a_thread_never_sampled_is_the_rest_and_nothing_used_is_no_error() -> None:
    assert shares(Profile({}), {10: 1.0}, WORKLOADS["W1"])[budget.REST] == 1.0
    assert sum(shares(Profile({}), {}, WORKLOADS["W1"]).values()) == 0


def test_a_part_at_twice_its_budget_is_marked() -> None:
    text = budget_table({budget.CONNECTION: 0.5, budget.LOG: 0.05}, 0.32, WORKLOADS["W1"])
    rows = {line.split(" | ")[0].strip("| "): line for line in text.splitlines()}
    assert "twice" not in rows[budget.CONNECTION]  # 160 of 90
    assert "twice" in rows[budget.LOG]  # 16 of 8
    assert "| 320 | 320 | 100% | - |" in rows["all"]


def test_calls_stand_beside_the_budget() -> None:
    text = budget_table({budget.LOG: 1.0}, 0.008, WORKLOADS["W1"], {budget.LOG: 42.4, budget.POLICY: 4})
    rows = {line.split(" | ")[0].strip("| "): line for line in text.splitlines()}
    assert rows[budget.LOG] == "| log | 8 | 8 | 100% | 42.4 |  |"
    assert rows[budget.METRICS].endswith("| 0 |  |")
    assert rows["all"] == "| all | 320 | 8 | 100% | 46.4 |  |"


def test_the_budget_is_not_held_against_other_messages_than_its_own() -> None:
    assert "twice" not in budget_table({budget.LOG: 1.0}, 0.32, WORKLOADS["W3"])
