"""A reactor that is turned while a command waits: what is left of it behind its end."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
from twisted.internet.threads import deferToThreadPool

from mailismus.disk.worker import ThreadPool
from mailismus.queue.turning import TurnedReactor


def open_descriptors() -> list[str]:
    return os.listdir("/proc/self/fd")


def test_nothing_is_left_open_behind_its_end() -> None:
    before = open_descriptors()
    turned = TurnedReactor()
    reactor: Any = turned.reactor
    assert turned.wait(deferToThreadPool(reactor, reactor.getThreadPool(), lambda: 7)) == 7
    assert open_descriptors() != before
    turned.close()
    turned.close()
    assert open_descriptors() == before


def test_what_a_thread_gives_behind_its_end_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    broken: list[object] = []
    monkeypatch.setattr(threading, "excepthook", broken.append)
    turned, go_on, has_ended = TurnedReactor(), threading.Event(), threading.Event()
    pool = ThreadPool(turned.reactor, "late")
    pool.start()
    pool.run(go_on.wait)
    pool.run(has_ended.set)
    pool.leave()
    turned.close()
    go_on.set()
    assert has_ended.wait(10)
    assert broken == []
