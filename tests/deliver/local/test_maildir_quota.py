"""Full maildirs and taken names: what senders are told, what waits, and that no thread does."""

from __future__ import annotations

import errno
import pathlib
from typing import Any

import attrs
import pytest

from mailismus.chunks.access import NoFreeName
from mailismus.config.values.settings import MessageStoreSettings, QuotaFull
from mailismus.deliver.local.deposit import WAITS_S
from mailismus.maildir.delivery import begin_delivery
from tests.deliver.harness import DIRECTORY, Bench, deliver_settings, files_of, relay
from tests.fakes.sink import SinkFactory

JOE, ANN = b"joe@home.example", b"ann@home.example"


def limit(root: pathlib.Path, user: str, text: str) -> None:
    """Give a user a quota."""
    (root / user / "Maildir").mkdir(parents=True, exist_ok=True)
    (root / user / "Maildir/maildirsize").write_text(text)


def reload(bench: Bench, **changes: Any) -> MessageStoreSettings:
    store = attrs.evolve(bench.store, **changes)
    bench.task.reload(deliver_settings(relay("192.0.2.1")), store, DIRECTORY)
    return store


def begin(bench: Bench, *recipients: bytes) -> SinkFactory:
    sink = bench.sink()
    bench.task.start()
    for recipient in recipients:
        bench.put(recipient)
    bench.run(1)
    return sink


def test_mail_for_a_full_maildir_waits_with_the_last_delay_and_is_delivered_when_there_is_room(
    tmp_path: pathlib.Path,
) -> None:
    bench = Bench(store=str(tmp_path))
    limit(tmp_path, "joe", "1C\n")
    begin(bench, JOE, JOE, ANN)
    full = b"status=deferred (452 4.2.2 the mailbox is full: there is room again when its owner has removed some mail)"
    assert len(bench.lines(b"to=<" + JOE, b"relay=local", b"dsn=4.2.2", full)) == 1
    assert bench.statuses() == {"sent": 2, "deferred": 1}
    (path,) = files_of(str(tmp_path), "joe")
    pathlib.Path(path).unlink()
    bench.run(14_000, 60.0)
    assert bench.statuses() == {"sent": 2, "deferred": 1}
    bench.run(2_500, 60.0)
    assert bench.statuses() == {"sent": 3, "deferred": 1}
    assert len(files_of(str(tmp_path), "joe")) == 1


def test_mail_for_a_full_maildir_goes_back_where_that_is_wanted_now(tmp_path: pathlib.Path) -> None:
    bench = Bench(store=str(tmp_path))
    limit(tmp_path, "joe", "1C\n")
    begin(bench, JOE)
    reload(bench, quota_full=QuotaFull.BOUNCE)
    bench.put(JOE)
    bench.run(1)
    assert bench.lines(
        b"to=<" + JOE, b"dsn=5.2.2", b"status=bounced (552 5.2.2 the mailbox is full: there is room again when"
    )


@pytest.mark.parametrize(("wanted", "code"), [(QuotaFull.DEFER, b"452 4.2.2"), (QuotaFull.BOUNCE, b"552 5.2.2")])
def test_a_message_that_never_fits_is_told_so(tmp_path: pathlib.Path, wanted: QuotaFull, code: bytes) -> None:
    bench = Bench(store=str(tmp_path))
    reload(bench, quota_full=wanted)
    limit(tmp_path, "joe", "10S\n")
    begin(bench, JOE)
    assert bench.lines(code + b" the message is larger than all that the mailbox may hold")
    assert files_of(str(tmp_path), "joe", "tmp") == files_of(str(tmp_path), "joe") == []


def test_other_names_are_used_from_a_reload_on(tmp_path: pathlib.Path) -> None:
    bench = Bench(store=str(tmp_path))
    begin(bench, JOE)
    reload(bench, names="#XM")
    bench.put(ANN)
    bench.run(1)
    reload(bench, names="n_m")
    bench.put(ANN)
    bench.run(1)
    (before,) = files_of(str(tmp_path), "joe")
    old, counted = sorted(files_of(str(tmp_path), "ann"), key=lambda path: "#" in path)
    assert ".M" in before
    assert "_" in pathlib.Path(old).name.split(".")[1]
    assert pathlib.Path(counted).name.split(".")[1].startswith("#0X1M")
    assert (tmp_path / ".boots").exists()


def test_a_taken_name_is_waited_for_and_holds_no_thread(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(store=str(tmp_path))
    taken = patch_names(monkeypatch, 2)
    sink = begin(bench, JOE, b"a@far.example", ANN)
    assert sink.acknowledged() == [b"a@far.example"]
    assert bench.statuses() == {"sent": 2}, "hers and the other's"
    bench.run(WAITS_S[0] * 2 + 1)
    assert bench.statuses() == {"sent": 3}
    assert taken == [JOE, JOE]


def test_names_that_stay_taken_defer_the_mail(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(store=str(tmp_path))
    taken = patch_names(monkeypatch, 99)
    begin(bench, JOE)
    bench.run(sum(WAITS_S))
    assert len(taken) == len(WAITS_S) + 1
    assert bench.lines(b"to=<" + JOE, b"status=deferred (451 4.3.0 maildir: File exists)")


def patch_names(monkeypatch: pytest.MonkeyPatch, count: int) -> list[bytes]:
    """The first tries for joe find their names taken; gives the list that tells of them."""
    taken: list[bytes] = []

    def begin_or_not(store: Any, userpath: str, user: bytes, *rest: Any) -> Any:
        if user == b"joe" and len(taken) < count:
            taken.append(JOE)
            raise NoFreeName(errno.EEXIST, "no free name")
        return begin_delivery(store, userpath, user, *rest)

    monkeypatch.setattr("mailismus.deliver.local.deposit.begin_delivery", begin_or_not)
    return taken
