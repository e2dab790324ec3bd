"""Mail that an act redirects goes to its relay or other recipient, and the mail of its undoing the usual way."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import Deferred

from mailismus.queue.acts.act import ActKind, Order
from mailismus.queue.acts.act_file import ActFile
from mailismus.queue.acts.acts import Acts, KeepSettings
from mailismus.queue.interface import Area
from tests.deliver.harness import Bench, files_of, relay
from tests.fakes.disk import MemoryDisk
from tests.fakes.worker import MemoryWorker


def make_acts(bench: Bench) -> Acts:
    disk = MemoryDisk()
    disk.make_directory("/state")
    file, worker = ActFile(disk, "/state"), MemoryWorker(is_prompt=True)
    acts = Acts(bench.queue.acting, file, worker, bench.clock, KeepSettings(60.0, 0))
    acts.load()
    acts.start()
    return acts


def redirect(bench: Bench, acts: Acts, to: str, *words: str) -> None:
    Deferred.fromCoroutine(acts.begin(Order(ActKind.REDIRECT, 0, words, "moved", to=to)))
    bench.run()


def test_redirected_mail_goes_to_its_relay_and_other_mail_does_not() -> None:
    bench = Bench()
    usual, other = bench.sink(), bench.sink(host="192.0.2.9", port=2525)
    bench.put(b"r@b.example", b"q@c.example")
    bench.put(b"joe@home.example")
    bench.run()  # an act concerns what is there when it begins
    acts = make_acts(bench)
    for words in (("domain=b.example",), ("recipient=joe@*",)):
        order = Order(ActKind.REDIRECT, 0, words, "down", to="192.0.2.9:2525")
        Deferred.fromCoroutine(acts.begin(order))
        bench.run()
    undone = Order(ActKind.REDIRECT, 0, ("domain=c.example",), "a mistake", to="192.0.2.9:2525")
    Deferred.fromCoroutine(acts.begin(undone))
    bench.run()
    Deferred.fromCoroutine(acts.undo(3, 0))
    bench.run()
    bench.task.start()
    bench.run()
    assert sorted(other.acknowledged()) == [b"joe@home.example", b"r@b.example"]
    assert usual.acknowledged() == [b"q@c.example"]
    assert any(b"relay=192.0.2.9[192.0.2.9]:2525" in line for line in bench.lines())


def test_mail_goes_to_another_recipient_by_the_route_of_that_one(tmp_path: Path) -> None:
    bench = Bench(relay("192.0.2.1"), relay("192.0.2.5", 25, b"new.example"), store=str(tmp_path))
    usual, other = bench.sink(), bench.sink(host="192.0.2.5")
    bench.put(b"a@old.example", b"b@old.example", b"c@old.example", b"d@old.example")
    bench.put(b"joe@home.example")
    bench.run()
    acts = make_acts(bench)
    redirect(bench, acts, "x@new.example", "recipient=a@*")
    redirect(bench, acts, "x@new.example", "recipient=b@*")
    redirect(bench, acts, "ann@home.example", "recipient=c@*")
    redirect(bench, acts, "y@far.example", "recipient=joe@*")
    bench.task.start()
    bench.run()
    assert other.acknowledged() == [b"x@new.example", b"x@new.example"]  # one entry each: copies are better than a loss
    assert sorted(usual.acknowledged()) == [b"d@old.example", b"y@far.example"]
    (file,) = files_of(str(tmp_path), "ann")
    assert b"Delivered-To: ann@home.example\n" in Path(file).read_bytes()
    assert (
        len(bench.lines(b"to=<x@new.example>, orig_to=<a@old.example>, relay=192.0.2.5[192.0.2.5]:25", b"status=sent")) == 1
    )
    assert len(bench.lines(b"to=<ann@home.example>, orig_to=<c@old.example>, relay=local")) == 1
    assert len(bench.lines(b"to=<d@old.example>, relay=")) == 1
    assert bench.count(Area.INCOMING) == bench.count(Area.DEFERRED) == 0


def test_a_recipient_in_utf_8_is_asked_for_by_smtputf8_and_fails_at_a_host_without() -> None:
    bench = Bench()
    sink = bench.sink({"EHLO": b"250-sink\r\n250-PIPELINING\r\n250 SMTPUTF8\r\n"})
    bench.put(b"a@old.example")
    bench.put(b"b@plain.example")
    bench.run()
    acts = make_acts(bench)
    redirect(bench, acts, "jürgen@x.example", "domain=old.example")
    redirect(bench, acts, "192.0.2.9:25", "domain=plain.example")
    plain = bench.sink(host="192.0.2.9")
    redirect(bench, acts, "jürgen@x.example", "domain=plain.example")
    redirect(bench, acts, "192.0.2.9:25", "0000000100000002")
    bench.task.start()
    bench.run()
    assert b"MAIL FROM:<s@a.example> SMTPUTF8" in sink.connections[0].commands
    assert sink.acknowledged() == ["jürgen@x.example".encode()]
    assert plain.acknowledged() == []
    assert len(bench.lines(b"orig_to=<b@plain.example>, relay=192.0.2.9", b"dsn=5.6.7, status=bounced")) == 1


def test_a_recipient_that_does_not_exist_here_bounces_and_an_undoing_before_that_saves_it(tmp_path: Path) -> None:
    bench = Bench(store=str(tmp_path))
    usual = bench.sink()
    bench.put(b"a@old.example")
    bench.put(b"b@old.example")
    bench.run()
    acts = make_acts(bench)
    redirect(bench, acts, "nobody@home.example", "recipient=a@*")
    redirect(bench, acts, "nobody@home.example", "recipient=b@*")
    Deferred.fromCoroutine(acts.undo(2, 0))
    bench.run()
    bench.task.start()
    bench.run()
    assert len(bench.lines(b"to=<nobody@home.example>, orig_to=<a@old.example>", b"dsn=5.1.1, status=bounced")) == 1
    assert usual.acknowledged() == [b"b@old.example"]
