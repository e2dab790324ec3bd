"""A conversion that is stopped anywhere is begun again, or went through whole."""

from __future__ import annotations

import pytest

from mailismus.errors import StartError
from mailismus.providers import Providers
from mailismus.queue.files.conversion import ConversionState
from tests.durability.crash.catalogue import catalogue_of
from tests.durability.crash.conversion import MODULES, ConversionExplorer, Side, compare_with_starts, every_pair
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.knowledge import Broken
from tests.durability.crash.states import Crash, Story
from tests.durability.crash.tree import Tree
from tests.durability.crash.workloads import OF_THE_CHUNKS, pairs

LINKS = Side("clustered", hardlinks=True)
CHUNK = Side("chunk")
EVERY_STATE = {"none", *(state.value for state in ConversionState)}


def explore(source: Side, target: Side, step: int) -> ConversionExplorer:
    explorer = ConversionExplorer(source, target)
    new = explorer.explore(explorer.convert, explorer.old, step=step)
    explorer.explore(explorer.forget, new, step=1)
    return explorer


SOME_PAIRS = [(Side("clustered"), Side("log")), (Side("log"), LINKS), (LINKS, CHUNK), (CHUNK, Side("log"))]


@pytest.mark.parametrize(("source", "target"), SOME_PAIRS, ids=str)
def test_no_crash_loses_mail(source: Side, target: Side) -> None:
    explorer = explore(source, target, 15)
    assert explorer.tally.states.keys() == EVERY_STATE


@pytest.mark.exhaustive
@pytest.mark.parametrize(("source", "target"), list(every_pair()), ids=str)
def test_no_crash_loses_mail_at_any_point(source: Side, target: Side) -> None:
    explorer = explore(source, target, 1)
    assert explorer.tally.states.keys() == EVERY_STATE
    assert explorer.tally.trees > 3000


CRASHED: dict[str, list[tuple[str, ...]]] = {
    "clustered": [
        ("store three", "deliver while moved", "checkpoint", "restart"),
        ("reuse a segment", "restart", "kill at a segment", "restart"),
    ],
    "log": [("store three", "compact"), ("store a large one", "retry", "round")],
    "chunk": [OF_THE_CHUNKS["preprocessed and settled"], OF_THE_CHUNKS["failed changes"]],
}


@pytest.mark.parametrize(("provider", "names"), [(name, one) for name, every in CRASHED.items() for one in every], ids=str)
def test_what_a_crash_left_is_read_as_a_start_reads_it(provider: str, names: tuple[str, ...]) -> None:
    assert compare_with_starts(Side(provider), names) > 40


@pytest.mark.exhaustive
@pytest.mark.parametrize("side", [Side("clustered"), LINKS, Side("log"), CHUNK], ids=str)
def test_what_any_crash_left_is_read_as_a_start_reads_it(side: Side) -> None:
    for task in pairs(catalogue_of(side.subject)):
        compare_with_starts(side, task.names)


def test_without_the_barrier_before_the_commit_instant_a_crash_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TreeDisk, "sync_file_system", lambda disk, path: None)
    with pytest.raises(Broken):
        explore(Side("clustered"), Side("log"), 50)


def test_without_the_sync_between_the_steps_a_crash_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = TreeDisk.sync_directory

    def sync(disk: TreeDisk, path: str) -> None:
        if path not in ("/q", "/s", "/q/conversion/old", "/s/conversion/old", "/q/conversion/new", "/s/conversion/new"):
            real(disk, path)

    monkeypatch.setattr(TreeDisk, "sync_directory", sync)
    with pytest.raises(Broken):
        explore(Side("clustered"), Side("log"), 20)


def test_a_server_that_starts_while_directories_change_places_is_refused_under_its_lock() -> None:
    explorer = ConversionExplorer(Side("clustered"), Side("log"))
    tree = _between(explorer)
    for side in (Side("clustered"), Side("log")):
        with pytest.raises(StartError, match="mailismus queue convert --to log") as refused:
            Providers(MODULES, TreeDisk(tree)).configured(side.settings)
        assert refused.value.status == 75
        with pytest.raises(Exception, match="mailismus queue convert --to log"):
            explorer.start(tree, side)  # it asked before the directories began to change places


def _between(explorer: ConversionExplorer) -> Tree:
    disk = TreeDisk(explorer.old)
    explorer.convert(disk)
    at = next(at for at, act in enumerate(disk.acts) if act.to == "/q/conversion/old/journal")
    return Story(disk.acts, explorer.old).tree(Crash(at + 1))
