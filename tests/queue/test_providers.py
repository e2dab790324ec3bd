"""The table of providers: whose a directory is, what a command imports, and what is refused before anything is changed."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import attrs
import pytest

from mailismus.__main__ import main
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IFile
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import StartError
from mailismus.providers import PROVIDERS, Providers
from mailismus.queue.convert.conversion import convert, tools_of
from mailismus.queue.files.mark import MARK
from tests.chunk.harness import ChunkHarness
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.bench import Bench
from tests.log.harness import LogHarness
from tests.support.copied import copy_out

TABLE = PROVIDERS.extended(novelty="tests.support.novelty")
IN_FILES = [name for name in PROVIDERS.names if PROVIDERS.named(name).is_in_files]
CONFIG = """\
<mailserver><application><announcehost>mx.example.net</announcehost></application>
<mta>
<queue provider="{provider}"><rootpath>{path}</rootpath></queue>
</mta>
<admin><socket>{path}/admin.sock</socket></admin></mailserver>
"""


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    (tmp_path / "queue").mkdir(0o700)
    return tmp_path / "queue"


def settings(queue: Path, provider: str) -> QueueSettings:
    return attrs.evolve(queue_settings(), rootpath=str(queue), provider=provider)


def write_config(queue: Path, provider: str) -> str:
    file = queue.parent / "c.xml"
    file.write_text(CONFIG.format(provider=provider, path=queue))
    return str(file)


def snapshot(path: Path) -> list[tuple[str, int]]:
    return sorted((str(each), each.lstat().st_mtime_ns) for each in (path, *path.rglob("*")))


def test_providers_are_found_by_name() -> None:
    assert PROVIDERS.names == ("clustered", "log", "chunk", "distributed")
    for name in TABLE.names:
        assert TABLE.named(name).name == name
    with pytest.raises(LookupError):
        PROVIDERS.named("novelty")


def test_a_mark_says_whose_a_directory_is(queue: Path) -> None:
    (queue / MARK).write_text("novelty 2\n")
    (queue / "journal").mkdir()
    assert TABLE.found_in(str(queue)).name == "novelty"
    assert TABLE.configured(settings(queue, "novelty")).name == "novelty"


@pytest.mark.parametrize("name", ["journal", "incoming", "deferred", "bounces"])
def test_without_a_mark_a_queue_with_these_directories_is_clustered(queue: Path, name: str) -> None:
    (queue / name).mkdir()
    assert TABLE.found_in(str(queue)).name == "clustered"
    with pytest.raises(StartError, match="holds a queue of provider clustered: write that") as refused:
        TABLE.configured(settings(queue, "novelty"))
    assert refused.value.status == 78


def test_an_empty_directory_is_anybody_s_and_none_yet(queue: Path) -> None:
    for name in TABLE.names:
        assert TABLE.configured(settings(queue, name)).name == name
        assert TABLE.configured(settings(queue / "none", name)).name == name
    with pytest.raises(FileNotFoundError):
        TABLE.found_in(str(queue))


def test_a_damaged_mark_leaves_the_look_at_the_files(queue: Path) -> None:
    (queue / MARK).write_text("clus")
    with pytest.raises(StartError) as refused:
        TABLE.found_in(str(queue))
    assert refused.value.status == 65
    (queue / "journal").mkdir()
    assert TABLE.found_in(str(queue)).name == "clustered"
    assert TABLE.configured(settings(queue, "clustered")).name == "clustered"
    with pytest.raises(StartError):
        TABLE.configured(settings(queue, "novelty"))


def test_a_damaged_mark_of_another_is_not_written_over(queue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A clustered queue has its directories before its mark: this is none, whatever the configuration says."""
    (queue / MARK).write_text("novel")
    (queue / "boxes").mkdir()
    spool = queue.parent / "spool"
    spool.mkdir(0o700)
    config = write_config(queue, "clustered")
    text = Path(config).read_text()
    Path(config).write_text(text.replace("</rootpath>", f"</rootpath><spool><rootpath>{spool}</rootpath></spool>"))
    before = snapshot(queue.parent)
    for words in (["fsck"], ["fsck", "--repair"]):
        assert main(["--config", config, *words], TABLE) == 65
        assert "no directory of a clustered queue is beside it: restore this file" in capsys.readouterr().err
    assert snapshot(queue.parent) == before


class NoMarkDisk(PosixDisk):
    """No mark can be read."""

    def open(self, path: str) -> IFile:
        if os.path.basename(path) == MARK:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return super().open(path)


def test_a_mark_that_can_not_be_read_leaves_the_look_at_the_files(queue: Path) -> None:
    """Otherwise no repair could begin."""
    (queue / MARK).write_text("clustered 1\n")
    table = Providers({"clustered": "mailismus.queue.providers.clustered.entry"}, NoMarkDisk(Access.READ_ONLY))
    with pytest.raises(OSError, match="Input/output error"):
        table.found_in(str(queue))
    (queue / "journal").mkdir()
    assert table.found_in(str(queue)).name == "clustered"
    assert table.configured(settings(queue, "clustered")).name == "clustered"
    with pytest.raises(StartError, match="holds a queue of provider clustered"):
        table.extended(novelty="tests.support.novelty").configured(settings(queue, "novelty"))


def test_a_file_s_provider_is_that_of_the_mark_above_it(queue: Path) -> None:
    (queue / MARK).write_text("novelty 3\n")
    assert TABLE.of_file(str(queue / "a" / "b" / "file")).name == "novelty"
    assert TABLE.of_file(str(queue / "a" / "b" / "c" / "file")).name == "clustered"
    (queue / MARK).write_text("unheard 3\n")
    assert TABLE.of_file(str(queue / "file")).name == "clustered"


@pytest.mark.parametrize(
    ("mark", "status", "text"),
    [
        (
            "unheard 1",
            65,
            "holds a queue of provider unheard, which this Mailismus does not have: use the one that wrote it",
        ),
        ("novelty 4", 65, "is of format 4, written by a newer Mailismus; this one reads 2 and 3: start that one"),
        ("novelty 1", 65, "is of format 1, written by an older Mailismus; this one reads 2 and 3: start that one"),
    ],
)
def test_what_this_version_does_not_have_is_refused_by_every_command(
    queue: Path, mark: str, status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (queue / MARK).write_text(mark + "\n")
    before = snapshot(queue)
    for words in (["queue", "count"], ["queue", "list"], ["fsck"]):
        assert main([*words, "--queue", str(queue)], TABLE) == status
        assert text in capsys.readouterr().err
    assert snapshot(queue) == before


def test_every_command_refuses_the_directory_of_another_with_file_and_line(
    queue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (queue / MARK).write_text("novelty 3\n")
    config = write_config(queue, "clustered")
    before = snapshot(queue)
    for words in (["queue", "count"], ["queue", "list"], ["fsck"], ["fsck", "--repair"]):
        assert main(["--config", config, *words], TABLE) == 78
        message = capsys.readouterr().err
        assert message.startswith(
            f'{config}:3: <queue provider> is "clustered", but {queue} holds a queue of provider novelty'
        )
    assert snapshot(queue) == before


@pytest.mark.parametrize(("whose", "other"), list(permutations(PROVIDERS.names, 2)))
def test_the_conversion_is_advised_where_there_is_one(queue: Path, whose: str, other: str) -> None:
    (queue / MARK).write_text(f"{whose} {PROVIDERS.named(whose).formats[-1]}\n")
    with pytest.raises(StartError) as refused:
        PROVIDERS.configured(settings(queue, other))
    what, _, advice = refused.value.text.partition(f"holds a queue of provider {whose}: ")
    assert what.startswith(f'<queue provider> is "{other}"')
    command = f"mailismus queue convert --to {other}"
    if whose in IN_FILES:  # each of these conversions is made by tests/convert, or tests/distributed
        assert advice == f"write that, or another <rootpath>, or convert it: {command}"
    else:
        assert advice == f"write that, or another <rootpath>; with that written it can be converted: {command}"


@pytest.mark.parametrize(("whose", "other"), [("distributed", "log"), ("clustered", "distributed")])
def test_a_conversion_without_the_services_is_refused(queue: Path, whose: str, other: str) -> None:
    (queue / MARK).write_text(f"{whose} {PROVIDERS.named(whose).formats[-1]}\n")
    if whose == "clustered":
        for area in ("incoming", "deferred", "bounces", "hold", "deleted", "journal"):
            (queue / area).mkdir(0o700)
    tools = tools_of(PROVIDERS, PosixDisk(), lambda: 0.0, lambda what, done, total: None)
    with pytest.raises(StartError) as refused:
        convert(settings(queue, whose), PROVIDERS.named(other), tools)
    assert refused.value.status in (65, 78)
    assert (queue / MARK).read_text().startswith(whose)
    assert not (queue / "conversion").exists()


@pytest.mark.parametrize(
    ("mark", "advice"),
    [
        ("unheard 1", "write another <rootpath>, or start the Mailismus that wrote it"),
        ("novelty 4", "write that, or another <rootpath>"),
    ],
)
def test_no_conversion_is_advised_of_what_this_version_does_not_read(queue: Path, mark: str, advice: str) -> None:
    (queue / MARK).write_text(f"{mark}\n")
    with pytest.raises(StartError) as refused:
        TABLE.configured(settings(queue, "clustered"))
    assert refused.value.text.partition(f"provider {mark.split()[0]}: ")[2] == advice


def checksums(path: Path) -> dict[str, str]:
    """Kind or checksum of each name below this directory."""
    names = sorted(path.rglob("*"))
    return {str(name): hashlib.sha256(name.read_bytes()).hexdigest() if name.is_file() else "directory" for name in names}


@pytest.mark.parametrize("has_mark", [True, False], ids=["marked", "without-mark"])
@pytest.mark.parametrize(("whose", "other"), list(permutations(IN_FILES, 2)))
def test_each_local_provider_refuses_the_directory_of_the_other(
    queue: Path, whose: str, other: str, has_mark: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A queue that took a message, and every command with the other provider in the configuration."""
    makers: dict[str, Callable[[], LogHarness | ClusteredHarness | ChunkHarness]]
    makers = {"clustered": ClusteredHarness, "log": LogHarness, "chunk": ChunkHarness}
    harness = makers[whose]()
    Bench(harness, harness.open()).put()
    copy_out(harness.disk, queue.parent)
    assert (queue / MARK).is_file()
    if not has_mark:
        (queue / MARK).unlink()
    config = write_config(queue, other)
    before = checksums(queue)
    for words in (["queue", "count"], ["queue", "list"], ["fsck"], ["fsck", "--repair"]):
        assert main(["--config", config, *words]) == 78
        message = capsys.readouterr().err
        assert message.startswith(
            f'{config}:3: <queue provider> is "{other}", but {queue} holds a queue of provider {whose}'
        )
    with pytest.raises(StartError) as refused:
        PROVIDERS.configured(settings(queue, other))
    assert refused.value.status == 78
    assert checksums(queue) == before


def test_a_queue_without_a_spool_is_looked_at_without_one(queue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (queue / MARK).write_text("novelty 3\n")
    config = write_config(queue, "novelty")
    for words in (["--config", config, "queue", "count"], ["queue", "count", "--queue", str(queue)]):
        assert main(words, TABLE) == 0
    assert main(["queue", "count", "--queue", str(queue), "--spool", str(queue)], TABLE) == 64
    assert "which has no spool: remove --spool" in capsys.readouterr().err


def test_a_check_counts_in_its_provider_s_words(queue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (queue / MARK).write_text("novelty 3\n")
    assert main(["fsck", "--queue", str(queue)], TABLE) == 0
    assert capsys.readouterr().out == "checked 1 box, 2 oxen: nothing found\n"
    assert main(["--config", write_config(queue, "novelty"), "fsck", "--repair", "--json"], TABLE) == 0
    assert '{"checked": {"boxes": 1, "oxen": 2}, ' in capsys.readouterr().out


def test_dump_prints_a_mark_and_asks_the_provider_for_the_rest(queue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (queue / MARK).write_text("novelty 3\n")
    assert main(["dump", str(queue / MARK)], TABLE) == 0
    assert main(["dump", str(queue / "x")], TABLE) == 0
    assert capsys.readouterr().out == "mark of a queue of provider novelty, format 3\na novelty\n"


COUNTING = """
import sys
from mailismus.__main__ import main
from mailismus.providers import PROVIDERS
status = main(sys.argv[1:], PROVIDERS.extended(novelty="tests.support.novelty"))
print(status, *(name for name in sys.modules if name.startswith(("mailismus.queue.providers.", "mailismus.app", "tests."))))
"""


def modules_of(*words: str) -> set[str]:
    """What a command that ends well has imported of providers and of the server."""
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", COUNTING, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": root})
    status, *modules = done.stdout.splitlines()[-1].split()
    assert status == "0", done.stderr
    return set(modules)


def test_a_command_imports_the_provider_that_it_needs_and_no_other(queue: Path) -> None:
    (queue / MARK).write_text("novelty 3\n")
    assert modules_of("queue", "count", "--queue", str(queue)) == {"tests.support", "tests.support.novelty"}
    (queue / MARK).write_text("clustered 1\n")
    (queue / "journal").mkdir()
    (queue.parent / "spool").mkdir()
    modules = modules_of("queue", "count", "--queue", str(queue), "--spool", str(queue.parent / "spool"))
    own = "mailismus.queue.providers.clustered"
    assert {name.removeprefix(own + ".").partition(".")[0] for name in modules} >= {"entry", "recovery", "read", "index"}
    assert [name for name in modules if not (name + ".").startswith(own + ".")] == []
    assert modules.isdisjoint({f"{own}.{name}" for name in ("provider", "running", "ledger", "fsck", "checkpoint.run")})


def test_the_configuration_alone_loads_no_provider(queue: Path) -> None:
    assert modules_of("--config", write_config(queue, "clustered"), "config", "show") == set()
