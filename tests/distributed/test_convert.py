"""Conversion from and to the shared queue: all is kept, wherever it is stopped, and no server is let in between."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import ModuleType

import attrs
import pytest
from twisted.internet.defer import Deferred

from mailismus.config.values.services import ServicesSettings
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.posix import PosixDisk
from mailismus.errors import StartError
from mailismus.mail.ids import QueueId
from mailismus.providers import PROVIDERS
from mailismus.queue.acts.marking import FOR_EVER, marked
from mailismus.queue.convert.conversion import Converted, convert, tools_of
from mailismus.queue.convert.forgetting import forget_old
from mailismus.queue.files.conversion import ConversionState, read_conversion
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.provider import ConversionEnd, IProviders, QueuePlace
from mailismus.queue.providers.distributed.conversion import shutting
from mailismus.queue.providers.distributed.format.tables import MAILS, TASKS, queue_of
from mailismus.queue.providers.distributed.identity.epochs import next_number
from mailismus.queue.providers.distributed.identity.gate import ConversionGate, set_gate
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.stores.rows import IRows
from mailismus.queue.sharing import ACTS
from tests.contracts.bench import Bench, addresses
from tests.convert.kinds import (
    KINDS,
    Everything,
    Mail,
    QueueKind,
    everything_in,
    fill,
    harness_of,
    look,
    make_queue,
    settings_of,
    stop,
)
from tests.distributed.commands import ModelCommands, ModelProvider, ReachedBy
from tests.distributed.harness import VIEW, ModelHarness
from tests.distributed.models.fates import Fate
from tests.distributed.test_queue import rows

SHARED = "distributed"
LOCAL = (KINDS[0], KINDS[2], KINDS[3])
LOG = KINDS[2]


class Host:
    """A host with a directory, whose configuration names the services, which are models."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self.harness = ModelHarness()
        self.commands = ModelCommands(self.harness, path, monkeypatch, capsys)
        self.planned: tuple[str, Fate] | None = None
        module = ModuleType("tests.distributed.converted_entry")
        module.PROVIDER = ModelProvider(self.harness, lambda: self.planned)  # type: ignore[attr-defined]  # made here
        monkeypatch.setitem(sys.modules, module.__name__, module)
        self.providers: IProviders = PROVIDERS.extended(distributed=module.__name__)

    def settings(self, kind: QueueKind) -> QueueSettings:
        return attrs.evolve(settings_of(kind, self.path), services=self.services())

    def services(self) -> ServicesSettings:
        """The services, with the view of the harness's servers."""
        services = self.commands.settings().services
        assert services is not None
        view = attrs.evolve(services.view, bucketcount=VIEW.bucket_count, updatebrowsestartpace=VIEW.pace)
        return attrs.evolve(services, view=view)

    def convert(self, kind: QueueKind, target: str, progress: Callable[[str, int, int], None] | None = None) -> Converted:
        """`kind`: that of the queue in files."""
        shown = progress or (lambda what, done, total: None)
        tools = tools_of(self.providers, PosixDisk(), self.harness.now, shown)
        return convert(self.settings(kind), self.providers.named(target), tools)

    def forget(self, kind: QueueKind) -> None:
        def forget(source: str) -> None:
            named = self.providers.named(source)
            named.end_conversion(self.settings(kind), ConversionEnd.FORGOTTEN, is_source=True)

        forget_old(PosixDisk(), str(self.path / "queue"), forget)

    def give_up(self, kind: QueueKind) -> None:
        for is_source in (True, False):
            named = self.providers.named(SHARED)
            named.end_conversion(self.settings(kind), ConversionEnd.GIVEN_UP, is_source=is_source)

    def look(self) -> Everything:
        """All of the shared queue, as commands read it."""
        place = QueuePlace(str(self.path / "queue"), None, self.services())
        return everything_in(self.providers.named(SHARED).open_stopped(place))

    def gate(self) -> ConversionGate:
        owner = [row["owner"] for row in rows(self.harness, TASKS) if row["name"] == "conversion"]
        return ConversionGate(owner[0]) if owner else ConversionGate.OPEN

    def serve(self) -> Bench:
        """A server elsewhere."""
        return Bench(self.harness, self.harness.make())

    def fill(self) -> Everything:
        """Mail in the shared queue, and the mark of a server here."""
        queue = self.harness.open()
        fill(Mail(self.harness, queue))
        self.harness.advance(1)
        self.harness.wait(queue.close())
        directory = self.path / "queue"
        directory.mkdir(0o700, exist_ok=True)
        (directory / "provider").write_text("distributed 2\n")
        return self.look()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Host]:
    tmp_path.chmod(0o700)
    host = Host(tmp_path, monkeypatch, capsys)
    yield host
    host.harness.close()


def refused(status: int, words: str, act: Callable[[], object]) -> None:
    with pytest.raises(StartError, match=words) as caught:
        act()
    assert caught.value.status == status


@pytest.mark.parametrize("kind", LOCAL, ids=str)
def test_into_services_and_back(host: Host, kind: QueueKind) -> None:
    before = make_queue(kind, host.path)
    assert {entry.area for _, entries, _ in before.values() for entry in entries.values()} == set(Area)
    done = host.convert(kind, SHARED)
    assert done.copied is not None
    assert done.copied.messages == len(before)
    assert host.look() == before
    assert look(kind, host.path, "conversion/old") == before
    assert host.gate() is ConversionGate.OPEN
    host.forget(kind)
    assert not (host.path / "queue" / "conversion").exists()
    host.convert(kind, kind.provider)
    assert look(kind, host.path) == before
    assert host.gate() is ConversionGate.LEFT
    assert host.look() == before, "kept until it is forgotten"
    host.forget(kind)
    assert host.look() == {}
    assert host.gate() is ConversionGate.OPEN
    assert [key for key in host.harness.world.objects.objects or () if key.startswith("mail/")] == []
    assert rows(host.harness, MAILS) == []
    assert look(kind, host.path) == before


def test_servers_deliver_what_came_and_give_higher_ids(host: Host) -> None:
    before = make_queue(LOG, host.path)
    host.convert(LOG, SHARED)
    bench = host.serve()
    host.harness.advance(1)
    entries = {(spool_id, number): one for spool_id, (_, some, _) in before.items() for number, one in some.items()}
    for area in (Area.INCOMING, Area.DEFERRED, Area.BOUNCES):
        taken = bench.take_until(area, sum(one.area is area for one in entries.values()))
        numbers = {(message.spool_id, entry.number) for message in taken for entry in message.entries}
        assert numbers == {name for name, one in entries.items() if one.area is area}, area
        bench.remove([QueueId(*name) for name in numbers])
    assert bench.put() >> 32 > max(before) >> 32
    host.harness.advance(60)
    bench.remove([QueueId(message.spool_id, entry.number) for message, entry in bench.search()])
    host.harness.advance(10)
    assert host.harness.world.objects.objects == {}
    assert rows(host.harness, MAILS) == []


def test_a_queue_that_holds_mail_is_no_target(host: Host) -> None:
    host.fill()
    (host.path / "queue" / "provider").unlink()
    before = make_queue(LOG, host.path)
    there = host.look()
    refused(os.EX_CONFIG, "holds mail", lambda: host.convert(LOG, SHARED))
    assert look(LOG, host.path) == before
    assert host.look() == there
    assert host.gate() is ConversionGate.OPEN
    assert not (host.path / "queue" / "conversion").exists()


@pytest.mark.parametrize("is_source", [True, False])
def test_a_server_that_runs_refuses_it(host: Host, is_source: bool) -> None:
    bench = host.serve()
    if is_source:
        (host.path / "queue").mkdir(0o700)
        (host.path / "queue" / "provider").write_text("distributed 2\n")
        bench.put()
        refused(os.EX_TEMPFAIL, "servers serve this queue", lambda: host.convert(LOG, "log"))
    else:
        make_queue(LOG, host.path)
        refused(os.EX_TEMPFAIL, "servers serve this queue", lambda: host.convert(LOG, SHARED))
    assert host.gate() is ConversionGate.OPEN
    assert bench.put()


@pytest.mark.parametrize("is_source", [True, False])
def test_one_that_was_refused_leaves_no_lease(host: Host, is_source: bool) -> None:
    """It is begun again as soon as the server has ended."""
    before = host.fill() if is_source else make_queue(LOG, host.path)
    harness = host.harness
    queue = harness.make()
    refused(os.EX_TEMPFAIL, "1 other servers", lambda: host.convert(LOG, "log" if is_source else SHARED))
    refused(os.EX_TEMPFAIL, "1 other servers", lambda: host.convert(LOG, "log" if is_source else SHARED))
    harness.wait(queue.close())
    host.convert(LOG, "log" if is_source else SHARED)
    assert (look(LOG, host.path) if is_source else host.look()) == before


def test_one_that_fails_beside_another_leaves_its_gate_shut(host: Host) -> None:
    host.fill()
    stores = host.harness.world.server()
    elsewhere = ServerLease(stores.rows, "command elsewhere", host.harness.now)
    host.harness.world.wait(elsewhere.acquire(-2))
    host.harness.world.wait(set_gate(stores.rows, (ConversionGate.OPEN,), ConversionGate.LEAVING))
    refused(os.EX_TEMPFAIL, "servers serve this queue", lambda: host.convert(LOG, "log"))
    for _ in range(2):
        refused(os.EX_TEMPFAIL, "1 other servers serve this queue", lambda: host.give_up(LOG))
    assert host.gate() is ConversionGate.LEAVING


@pytest.mark.parametrize("is_source", [True, False])
def test_a_server_that_came_in_between_opens_it(host: Host, is_source: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its lease, and found the gate open, while the command shut it."""
    if is_source:
        host.fill()
    else:
        make_queue(LOG, host.path)
    stores = host.harness.world.server()
    elsewhere = ServerLease(stores.rows, "mx", host.harness.now)
    came = list[Deferred[None]]()

    async def set_later(rows: IRows, found: Collection[ConversionGate], wanted: ConversionGate) -> ConversionGate:
        if not came:
            came.append(Deferred.fromCoroutine(elsewhere.acquire(9)))
            await came[0]
        return await set_gate(rows, found, wanted)

    monkeypatch.setattr(shutting, "set_gate", set_later)
    refused(os.EX_TEMPFAIL, "servers serve this queue", lambda: host.convert(LOG, "log" if is_source else SHARED))
    assert host.gate() is ConversionGate.OPEN


class Stop(BaseException):
    """The process ends here."""


def stop_at(moment: tuple[str, int]) -> Callable[[str, int, int], None]:
    """The process ends when so many messages or entries were read, copied or compared."""

    def progress(what: str, done: int, total: int) -> None:
        if (what, done) == moment:
            raise Stop

    return progress


MOMENTS = [("entries read", 1), *((f"messages {act}", count) for act in ("copied", "compared") for count in (1, 7, 11))]
MIDDLE = "messages copied", 7


@pytest.mark.parametrize("moment", MOMENTS)
def test_into_it_stopped_anywhere_it_is_begun_again(host: Host, moment: tuple[str, int]) -> None:
    before = make_queue(LOG, host.path)
    with pytest.raises(Stop):
        host.convert(LOG, SHARED, stop_at(moment))
    assert look(LOG, host.path) == before
    if host.gate() is not ConversionGate.OPEN:
        refused(os.EX_TEMPFAIL, "conversion of this queue", host.serve)
        host.harness.advance(40)
    host.convert(LOG, SHARED)
    assert host.look() == before
    bench = host.serve()
    host.harness.advance(60)
    count = sum(one.area is Area.INCOMING for _, entries, _ in before.values() for one in entries.values())
    assert sum(len(one.entries) for one in bench.take_until(Area.INCOMING, count)) == count


@pytest.mark.parametrize("moment", MOMENTS)
def test_out_of_it_stopped_anywhere_it_is_begun_again(host: Host, moment: tuple[str, int]) -> None:
    before = host.fill()
    with pytest.raises(Stop):
        host.convert(LOG, "log", stop_at(moment))
    assert host.look() == before
    assert host.gate() is ConversionGate.LEAVING
    refused(os.EX_TEMPFAIL, "conversion of this queue", host.serve)
    host.harness.advance(40)
    host.convert(LOG, "log")
    assert look(LOG, host.path) == before
    refused(os.EX_TEMPFAIL, "converted to another provider", host.serve)
    harness = harness_of(LOG, host.path)
    queue = harness.open()
    assert Mail(harness, queue).put() >> 32 > max(before) >> 32
    stop(harness, queue)


@pytest.mark.parametrize("is_source", [True, False])
def test_one_that_was_stopped_may_be_given_up(host: Host, is_source: bool) -> None:
    before = host.fill() if is_source else make_queue(LOG, host.path)
    with pytest.raises(Stop):
        host.convert(LOG, "log" if is_source else SHARED, stop_at(MIDDLE))
    host.harness.advance(40)
    host.give_up(LOG)
    assert host.gate() is ConversionGate.OPEN
    assert host.look() == (before if is_source else {})
    assert host.serve().put()


@pytest.mark.parametrize("is_source", [True, False])
def test_a_kill_behind_the_commit_instant_goes_forward(host: Host, is_source: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    before = host.fill() if is_source else make_queue(LOG, host.path)

    def end(*args: object, **words: object) -> None:
        raise Stop

    with monkeypatch.context() as patched:
        patched.setattr(ModelProvider, "end_conversion", end)
        with pytest.raises(Stop):
            host.convert(LOG, "log" if is_source else SHARED)
    state = read_conversion(PosixDisk(), str(host.path / "queue"))
    assert state is not None
    assert state.state is ConversionState.MOVING_OUT
    host.harness.advance(40)
    refused(os.EX_TEMPFAIL, "conversion of this queue", host.serve)
    assert host.convert(LOG, "log" if is_source else SHARED).copied is None
    assert host.gate() is (ConversionGate.LEFT if is_source else ConversionGate.OPEN)
    assert (look(LOG, host.path) if is_source else host.look()) == before


@pytest.mark.parametrize("call", ["put", "write", "add", "change", "publish"])
@pytest.mark.parametrize("fate", [Fate.NOT_DONE, Fate.UNANSWERED, Fate.NEVER])
def test_a_call_that_fails_ends_it_or_is_repeated(host: Host, call: str, fate: Fate) -> None:
    before = make_queue(LOG, host.path)
    host.planned = call, fate
    try:
        host.convert(LOG, SHARED)
    except StartError as error:
        assert error.status == os.EX_TEMPFAIL  # noqa: PT017  # either end is right
        assert look(LOG, host.path) == before
    host.planned = None
    host.harness.advance(40)
    if (host.path / "queue" / "provider").read_text().startswith("log"):
        host.convert(LOG, SHARED)
    assert host.look() == before
    assert host.gate() is ConversionGate.OPEN


def test_a_content_that_is_damaged_ends_it(host: Host) -> None:
    before = host.fill()
    objects = host.harness.world.objects.objects
    assert objects is not None
    key = next(iter(objects))
    kept = objects[key]
    objects[key] = kept[::-1]
    refused(os.EX_DATAERR, "does not have its sum", lambda: host.convert(LOG, "log"))
    objects[key] = kept
    assert host.gate() is ConversionGate.OPEN
    assert host.look() == before


def test_commands_end_where_the_gate_is_shut(host: Host) -> None:
    host.fill()
    with pytest.raises(Stop):
        host.convert(LOG, "log", stop_at(MIDDLE))
    host.harness.advance(40)
    status, _, err = host.commands.run("fsck")
    assert status == os.EX_TEMPFAIL
    assert "conversion" in err
    assert host.commands.run("queue", "list")[0] == os.EX_OK
    status, _, err = host.commands.run("queue", "convert", "--give-up")
    assert (status, err) == (os.EX_OK, "")
    assert host.commands.run("fsck")[0] == os.EX_OK
    assert host.gate() is ConversionGate.OPEN


def test_triggers_of_what_was_given_up_do_no_harm(host: Host) -> None:
    make_queue(LOG, host.path)
    with pytest.raises(Stop):
        host.convert(LOG, SHARED, stop_at(MIDDLE))
    host.harness.advance(40)
    host.give_up(LOG)
    bench = host.serve()
    bench.put(addresses(2))
    host.harness.advance(30)
    assert len(bench.take_ids()) == 2
    assert not host.harness.world.broker.queues["mq.dead"].waiting
    assert len(host.harness.world.broker.queues[queue_of("incoming")].waiting) == 0


def test_no_server_gives_a_number_to_an_act_that_converted_mail_is_marked_with(host: Host) -> None:
    """An act of another server would be undone with the mail of the first."""
    harness = harness_of(LOG, host.path)
    queue = harness.open()
    Mail(harness, queue).put()
    bench = Bench(harness, queue)
    (message,) = bench.take()
    (entry,) = message.entries
    held = Settlement(QueueId(message.spool_id, 1), Area.HELD, FOR_EVER, words=marked(entry, 7))
    bench.commit((), [held])
    stop(harness, queue)
    host.convert(LOG, SHARED)
    assert host.harness.world.wait(next_number(host.harness.world.server().rows, ACTS)) == 8


@pytest.mark.parametrize(("ahead_s", "said"), [(-7200.0, "7200 s behind"), (61.0, "61 s ahead of")])
def test_a_host_with_a_wrong_clock_converts_nothing(
    host: Host, monkeypatch: pytest.MonkeyPatch, ahead_s: float, said: str
) -> None:
    """It would put mail into slices that are over, or take what others have put in for what is yet to come."""
    before, now = make_queue(LOG, host.path), host.harness.now
    monkeypatch.setattr(ReachedBy, "now", lambda reached: now() + ahead_s)
    refused(os.EX_TEMPFAIL, f"the clock of this host is {said} the database's", lambda: host.convert(LOG, SHARED))
    assert host.gate() is ConversionGate.OPEN
    assert look(LOG, host.path) == before
