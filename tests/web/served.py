"""A site over figures and entries of the tests at a port of loopback, in a process of its own, for a real browser.

python -m tests.web.served hostile          prints its address, and serves until it is ended
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

import attrs
from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import IReactorTCP, IReactorTime

from mailismus.admin.server.answers import LookableQueue
from mailismus.mail.attempts import DEFERRED, PastAttempt, with_attempt
from mailismus.observe.overview import Failure, Holding, Overview
from mailismus.queue.interface import Area, Entry
from mailismus.web.history.recorder import Recorder
from mailismus.web.history.samples import EVERY_S, KEPT, Sample
from mailismus.web.pictures import Pictures
from mailismus.web.search import Searches
from mailismus.web.site import Site
from mailismus.web.wire.channel import WebConnections
from tests.admin.samples import LATER, MX, Told, bounced, deferred, incoming, message
from tests.top.samples import NOW, busy, hop, idle
from tests.web.browsers import HERE
from tests.web.pages import FakeQueue
from tests.web.test_hostile import HOSTILE, overview_of, queue_of

LONGEST = "l" * 64 + "@" + ".".join(("d" * 61,) * 4)
"""An address as long as SMTP has them."""
ADDRESSES = (
    LONGEST,
    "jürgen@bücher.example",
    "用户@例子.测试",
    "משתמש@דוגמה.example",
    "a" * 64 + "@x.example",
)
SAID = "4.7.1 " + "https://long.example/" + "x" * 900
"""A reply that has no place where a line could be broken."""


@attrs.frozen
class RecordedDay:
    """What the page needs of a `Recorder`."""

    samples: tuple[Sample, ...] = ()


@attrs.frozen
class Scene:
    """What a site shows. `overview`: that of a look, by its number."""

    overview: Callable[[int], Overview]
    queue: FakeQueue
    samples: tuple[Sample, ...] = ()


def _busy(step: int) -> Overview:
    overview = busy(step)
    hops = tuple(hop(text, 3, hold="later", reason=SAID, deferred=step) for text in (LONGEST, *ADDRESSES))
    failures = tuple(Failure(NOW, "bounced", text, text, 12, f"mx[{text}]", SAID) for text in ADDRESSES)
    holds = (*overview.holds, Holding("dead", LONGEST, SAID))
    return attrs.evolve(
        overview,
        next_hops=(*overview.next_hops, *hops),
        failures=(*overview.failures, *failures),
        holds=holds,
    )


def _tried(count: int) -> Entry:
    words = None
    for number in range(1, count + 1):
        made = PastAttempt(number, int(NOW) + 60 * number, DEFERRED, 60, b"encrypt", MX, 451, b"4.7.1", b"busy " * 30)
        words = with_attempt(words, made)
    return Entry(1, b"tried@six.example", Area.DEFERRED, NOW, count, LATER, MX, words)


def _queue() -> FakeQueue:
    long = [message(number, deferred(1, text.encode())) for number, text in enumerate(ADDRESSES, 10)]
    long = [attrs.evolve(one, sender=LONGEST.encode()) for one in long]
    many = [message(number, deferred(), bounced(2), incoming(3)) for number in range(100, 350)]
    header = b"X-Long: " + b"x" * 900 + b"\r\nSubject: long\r\n\r\n"
    return FakeQueue([message(1, _tried(6)), *long, *many], Told({}, [SAID.encode()]), header)


def _day(now: float) -> tuple[Sample, ...]:
    """A day with a gap, and numbers that grow."""
    minutes = (n for n in range(KEPT) if not 500 <= n < 600)
    return tuple(
        Sample(
            int(now - (KEPT - n) * EVERY_S),
            *(n / 90, n / 100, n % 7 / 300, 0.0, n % 50, n * 700, 3, 2, 5, n % 9, n % 40),
            *(0.004, 0.4 - n / 5000),
        )
        for n in minutes
    )


SCENES: Mapping[str, Callable[[], Scene]] = {
    "hostile": lambda: Scene(lambda step: overview_of(HOSTILE), queue_of(HOSTILE)),
    "busy": lambda: Scene(_busy, _queue(), _day(time.time())),
    "empty": lambda: Scene(idle, FakeQueue()),
}


def site_of(scene: Scene, clock: IReactorTime) -> Site:
    """The site of a scene."""
    step = 0

    def look(domain: bytes) -> Overview:
        nonlocal step
        step += 1
        return attrs.evolve(scene.overview(step), now=clock.seconds())

    searches = Searches(cast(LookableQueue, scene.queue), clock, time.monotonic)
    known = lambda domain: tuple(scene.queue.explained.of_domain(domain))  # noqa: E731
    recorder = cast(Recorder, RecordedDay(scene.samples))
    return Site(Pictures(look), recorder, searches, known, clock, time.monotonic)


@contextmanager
def served(scene: str) -> Iterator[str]:
    """Have a scene served. Yields its address, without a slash at the end."""
    command = [sys.executable, "-m", "tests.web.served", scene]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def main(scene: str) -> None:
    """Serve a scene."""
    from twisted.internet import reactor as installed

    reactor = cast(IReactorTCP, installed)
    site = site_of(SCENES[scene](), cast(IReactorTime, installed))
    connections = WebConnections(site.respond, HERE, cast(IReactorTime, installed))
    # Twisted wants a private type of factory.
    port = reactor.listenTCP(0, connections, interface="127.0.0.1")  # type: ignore[arg-type]
    host = port.getHost()
    assert isinstance(host, IPv4Address)
    print(f"http://127.0.0.1:{host.port}", flush=True)
    installed.run()


if __name__ == "__main__":
    main(sys.argv[1])
