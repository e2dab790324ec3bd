"""Observation, in the program: audit logs whose file system hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from twisted.internet.task import Clock

from mailismus.config.values.settings import AuditSettings, Settings
from mailismus.observe.audit_file import AuditFile
from mailismus.observe.audit_log import CLOSE_S, FLUSH_S
from mailismus.observe.maillog import MemoryMailLog
from mailismus.start.observation import LAYOUTS, Observation
from mailismus.start.server import Reactor
from tests.observe.test_audit import RELAYED


class FakeReactor(Clock):
    """A clock that is called from threads."""

    def callFromThread(self, function: Callable[..., Any], *arguments: object, **names: object) -> None:
        self.callLater(0, function, *arguments, **names)


def test_an_audit_log_that_hangs_keeps_neither_the_other_nor_a_stop_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, thaw, written = AuditFile.append, threading.Event(), threading.Event()

    def append(self: AuditFile, path: str, data: bytes, *, anew: bool) -> int:
        if "delivered" in path:
            thaw.wait(60)
            return len(data)
        count = real(self, path, data, anew=anew)
        written.set()
        return count

    monkeypatch.setattr(AuditFile, "append", append)
    form = next(iter(LAYOUTS))
    audits = [AuditSettings(str(tmp_path / name), form) for name in ("delivered", "bounced")]
    settings = SimpleNamespace(
        admin=SimpleNamespace(metrics=None),
        deliver=SimpleNamespace(audit=audits[0]),
        report=SimpleNamespace(audit=audits[1]),
        certificates=(),
    )
    clock = FakeReactor()
    observation = Observation(cast(Settings, settings), cast(Reactor, clock), clock, MemoryMailLog(), 0.0)
    observation.start()
    over: list[None] = []
    try:
        for log in observation.audits.logs.values():
            log.write(RELAYED)
        clock.advance(FLUSH_S)
        assert written.wait(60)
        assert (tmp_path / "bounced").read_text().count("\n") == 1
        observation.stop().addCallback(over.append)
        clock.advance(CLOSE_S)
        clock.advance(CLOSE_S)
        assert over == [None]
    finally:
        thaw.set()
