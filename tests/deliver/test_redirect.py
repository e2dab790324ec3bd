"""Mail that an act redirects goes to its relay, and the mail of its undoing the usual way."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from mailismus.queue.acts.act import ActKind, Order
from mailismus.queue.acts.act_file import ActFile
from mailismus.queue.acts.acts import Acts, KeepSettings
from tests.deliver.harness import Bench
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


def test_redirected_mail_goes_to_its_relay_and_other_mail_does_not() -> None:
    bench = Bench()
    usual, other = bench.sink(), bench.sink(host="192.0.2.9", port=2525)
    bench.put(b"r@b.example", b"q@c.example")
    bench.put(b"joe@home.example")
    bench.run()  # an act concerns what is there when it begins
    acts = make_acts(bench)
    for words in (("domain=b.example",), ("recipient=joe@*",)):
        order = Order(ActKind.REDIRECT, 0, words, "down", relay="192.0.2.9:2525")
        Deferred.fromCoroutine(acts.begin(order))
        bench.run()
    undone = Order(ActKind.REDIRECT, 0, ("domain=c.example",), "a mistake", relay="192.0.2.9:2525")
    Deferred.fromCoroutine(acts.begin(undone))
    bench.run()
    Deferred.fromCoroutine(acts.undo(3, 0))
    bench.run()
    bench.task.start()
    bench.run()
    assert sorted(other.acknowledged()) == [b"joe@home.example", b"r@b.example"]
    assert usual.acknowledged() == [b"q@c.example"]
    assert any(b"relay=192.0.2.9[192.0.2.9]:2525" in line for line in bench.lines())
