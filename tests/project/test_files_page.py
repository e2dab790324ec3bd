"""The page of files names every file and directory that a queue makes, and no other.

Workloads of the crash explorer run on a disk that records what is created, and what a server remembers is written there.
Endings of names come from the source too.
"""

from __future__ import annotations

import ast
import os
import re
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from twisted.internet.testing import MemoryReactor

from mailismus.deliver.knowledge.host_snapshot import write_snapshot
from mailismus.mail.ids import QueueId
from mailismus.queue.acts.act import Act as AdministratorsAct
from mailismus.queue.acts.act import ActKind, Order
from mailismus.queue.acts.act_file import MOST_BYTES, ActFile
from mailismus.queue.acts.record import begin_event
from mailismus.queue.files.state_file import HISTORY, write_state
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.chunk.format.version import IDS
from mailismus.queue.providers.chunk.recovery.due_times import write_due_times
from mailismus.queue.providers.chunk.signal import ChunkSignal
from mailismus.queue.providers.chunk.write.epochs import take_spool_id
from tests.chunk.harness import ChunkHarness
from tests.contracts.bench import NO_REPLY, Bench
from tests.durability.crash.acts import NAMES, Act
from tests.durability.crash.catalogue import CLUSTERED
from tests.durability.crash.conversion import ConversionExplorer, Side
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.explorer import Explorer
from tests.durability.crash.operations import DoesNotApply
from tests.log.harness import LogHarness, log_settings

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "files.md"
PLACEHOLDERS = {
    "NUMBER": r"[0-9]{8,}",
    "SLOT": r"[0-9]{8}T[0-9]{4}",
    "SPID": r"[0-9A-F]{16}",
    "NAME": r"[^/]+",
    "NN": r"[01][0-9a-f]",
    "K": r"[0-9]+",
    "P": r"[0-9]+",
    "EPOCH": r"[0-9a-f]{8,}",
    "N": r"[0-9]+",
    "M": r"[0-9]+",
}
OF_DAMAGE = ("queue/corrupt/NAME", "queue/corrupt/NAME.part", ".mqc.new", "/lock")
"""How those end that no workload on a sound disk makes (and locks, which make no act)."""
_ENDING = re.compile(r"(?:\{\})?[\w-]*(\.[a-z]{3,4})")


def names_on(page: str) -> list[str]:
    """The names in the first column of the table of kinds."""
    section = page.partition("## Kinds of files\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+/[^`]+)`", row)]


def as_pattern(name: str) -> re.Pattern[str]:
    """What a name on the page stands for."""
    words = re.split(r"\b(" + "|".join(PLACEHOLDERS) + r")\b", name)
    return re.compile("".join(PLACEHOLDERS.get(word, re.escape(word)) for word in words))


def made(acts: Iterable[Act]) -> Iterator[str]:
    """Names that these acts gave, below `queue` and `spool`."""
    for act in acts:
        if act.kind in NAMES:
            for path in (act.path, act.to):
                if path:
                    yield re.sub(r"^/s\b", "spool", re.sub(r"^/q\b", "queue", path))


def unknown(names: Iterable[str], page: str) -> set[str]:
    """Names that the page has no file or directory for."""
    patterns = [as_pattern(name) for name in names_on(page)]
    directories = [as_pattern(parent) for name in names_on(page) for parent in _parents(name)]
    others = [re.compile(re.escape(name)) for name in ("queue", "queue/state") if f"`{name}`" in page]
    return {name for name in names if not any(one.fullmatch(name) for one in (*patterns, *directories, *others))}


def _parents(name: str) -> Iterator[str]:
    while name := name.rpartition("/")[0]:
        yield name


def endings(text: str) -> set[str]:
    """Endings of file names in strings of a source: `.mqj`, or the end of an f-string."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and (end := _ENDING.fullmatch(node.value)):
            found.add(end[1])
    return found


@pytest.fixture(scope="module")
def created() -> set[str]:
    """What workloads made, with and without hard links."""
    found: set[str] = set()
    for hardlinks in (False, True):
        for name in CLUSTERED.every:
            workload = ("store three", name, "checkpoint") if name in CLUSTERED.needs_another else (name, "checkpoint")
            with suppress(DoesNotApply):
                world, _ = Explorer(hardlinks=hardlinks).run(workload)
                write_snapshot(world.disk, "/q/state", [])
                write_state(world.disk, "/q/state", HISTORY, 1, [])
                write_acts(world.disk)
                found.update(made(world.disk.acts))
    return found | made_by_a_log() | made_by_chunks() | made_by_a_conversion()


def write_acts(disk: TreeDisk) -> None:
    """Write the file of acts, until it is so long that it is written anew."""
    order = Order(ActKind.HOLD, 0, (), "x" * MOST_BYTES)
    file = ActFile(disk, "/q/state")
    file.append(begin_event(AdministratorsAct(1, order, 0.0)))
    file.close()
    ActFile(disk, "/q/state").load(0.0)


def made_by_a_conversion() -> set[str]:
    """What a conversion makes; of a queue in the making, or the old one, the directory alone."""
    explorer = ConversionExplorer(Side("clustered"), Side("log"))
    disk = TreeDisk(explorer.old)
    explorer.convert(disk)
    own = [name for name in made(disk.acts) if "/conversion/" in name]
    return {"/".join(name.split("/")[:3]) for name in own}


def made_by_a_log() -> set[str]:
    """What a log-structured queue makes: while it is filled, and what is there then."""
    harness = LogHarness(log_settings(largemsgsize=1000))
    paths: set[str] = set()

    def note(act: str, path: str) -> None:
        paths.add(path)

    harness.disk.fault = note
    queue = harness.open()
    bench = Bench(harness, queue)
    bench.put(content=b"x" * 2000)
    harness.round(queue)
    files = {path for path in (*paths, *harness.disk.names) if path not in harness.disk.directories}
    return {re.sub(r"^/s\b", "spool", re.sub(r"^/q\b", "queue", path)) for path in files if not path.endswith("/lock")}


def made_by_chunks() -> set[str]:
    """What a queue of chunks makes: mail for both sides, preprocessed, some of which fails."""
    harness = ChunkHarness()
    paths: set[str] = set()

    def note(act: str, path: str) -> None:
        paths.add(path)

    harness.disk.fault = note
    bench = Bench(harness, harness.open())
    spool_id = bench.put([b"joe@home.example", b"sue@a.example"])
    paths.update(harness.disk.names)
    assert harness.queue is not None
    harness.queue.parts.upkeep.run()
    harness.settle_down()
    bench.commit((), [Settlement(QueueId(spool_id, 2), Area.BOUNCES, 0.0, 1, NO_REPLY)])
    assert harness.opened is not None
    take_spool_id(harness.opened.directories.of(IDS))  # as a program beside the server does
    write_due_times(harness.disk, "/q", array("Q"), array("d"))
    files = {path for path in (*paths, *harness.disk.names) if path not in harness.disk.directories}
    return {re.sub(r"^/q\b", "queue", path) for path in files if not path.endswith("/lock")} | made_by_a_signal()


def made_by_a_signal() -> set[str]:
    """What a running server makes for the signal of other writers: a pipe, which is no file of a disk in memory."""
    with TemporaryDirectory() as path:
        signal = ChunkSignal(path, MemoryReactor(), lambda: None)  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        signal.start()
        found = {f"queue/{name}" for name in os.listdir(path)}
        signal.stop()
        assert os.listdir(path) == []
    return found


def test_every_file_that_a_queue_makes_is_on_the_page(created: set[str]) -> None:
    assert unknown(created, PAGE.read_text()) == set()


def test_every_file_on_the_page_is_made(created: set[str]) -> None:
    names = [name for name in names_on(PAGE.read_text()) if not name.endswith(OF_DAMAGE)]
    assert len(names) > 5
    assert [name for name in names if not any(as_pattern(name).fullmatch(one) for one in created)] == []


def test_every_ending_in_the_source_is_on_the_page() -> None:
    text = PAGE.read_text()
    packages = [ROOT / "mailismus" / name for name in ("journal", "spool", "queue")]
    found = {end for package in packages for path in package.rglob("*.py") for end in endings(path.read_text())}
    assert {".mqj", ".mqc", ".msg", ".new", ".part"} <= found
    assert {end for end in found if f"{end}`" not in text} == set()


def test_a_file_that_is_not_on_the_page_is_told() -> None:
    rows = ("`queue/journal/NUMBER.mqj`", "`spool/NN/SPID-M.msg`")
    page = "`queue`\n## Kinds of files\n" + "".join(f"| {row} | made |\n" for row in rows) + "## Other\n| `queue/x` |"
    names = ["queue", "queue/journal", "queue/journal/00000001.mqj", "spool/1f", "spool/1f/0000000100000002-1.msg"]
    others = ["queue/x", "queue/state", "queue/journal/1.mqj", "spool/2f", "spool/1f/0000000100000002.msg"]
    assert unknown([*names, *others], page) == set(others)
    assert endings('a = ".idx"\nb = f"{n:08d}.mqz"\nc = "no. end"\nd = "e.g"') == {".idx", ".mqz"}
