"""Signals: remembered before anything can answer them, answered once, whichever process of the start they came to."""

from __future__ import annotations

import os
import signal
from typing import cast

import pytest
from twisted.application.service import IServiceMaker
from twisted.internet.testing import MemoryReactorClock
from twisted.plugin import getPlugins

from mailismus.start.server import Reactor
from mailismus.start.signals import ASKING, Signals, remember
from tests.start.test_service import Events


def serve(signals: Signals) -> tuple[MemoryReactorClock, list[str]]:
    """A reactor that answers them, and what was answered."""
    answered: list[str] = []
    reactor = MemoryReactorClock()
    signals.serve(
        cast(Reactor, reactor),
        {signal.SIGUSR1: lambda: answered.append("reopen"), signal.SIGHUP: lambda: answered.append("reload")},
    )
    return reactor, answered


def test_what_comes_before_the_reactor_runs_is_answered_first_of_all_and_once() -> None:
    signals = Signals()
    for number in (*ASKING, *ASKING):
        signal.raise_signal(number)
    reactor, answered = serve(signals)
    reactor.callWhenRunning(lambda: answered.append("start"))
    assert answered == []
    reactor.run()
    assert answered == ["reopen", "reload", "start"]
    signals.doRead()
    assert answered == ["reopen", "reload", "start"]


def test_what_comes_later_is_answered_by_the_reactor() -> None:
    signals = Signals()
    reactor, answered = serve(signals)
    signal.raise_signal(signal.SIGHUP)
    assert answered == []
    assert reactor.getReaders() == [signals]
    signals.doRead()
    assert answered == ["reload"]


def test_a_signal_to_the_process_that_forked_is_answered_by_the_one_that_serves() -> None:
    signals = Signals()
    child = os.fork()
    if not child:
        signal.raise_signal(signal.SIGHUP)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    reactor, answered = serve(signals)
    reactor.run()
    assert answered == ["reload"]


def test_more_signals_than_the_pipe_holds_are_no_trouble() -> None:
    signals = Signals()
    for _ in range(100_000):
        signal.raise_signal(signal.SIGHUP)
    reactor, answered = serve(signals)
    reactor.run()
    assert set(answered) == {"reload"}


def test_an_act_that_fails_is_logged_and_the_others_are_answered() -> None:
    signals = Signals()
    _, answered = serve(signals)
    signals.answer({signal.SIGUSR1: lambda: 1 / 0})  # type: ignore[dict-item]  # it gives nothing
    signal.raise_signal(signal.SIGUSR1)
    signal.raise_signal(signal.SIGHUP)
    with Events() as events:
        signals.doRead()
    assert answered == ["reload"]
    assert "ZeroDivisionError" in str(events[0]["log_failure"])


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_sigint_ends_a_start_at_once_and_is_the_reactors_later(handler: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, handler)
    signals = Signals()
    assert signal.getsignal(signal.SIGINT) is (signal.SIG_IGN if handler is signal.SIG_IGN else signal.SIG_DFL)
    serve(signals)
    assert signal.getsignal(signal.SIGINT) is handler


def test_the_plugin_remembers_signals_when_it_is_chosen_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailismus.start.signals._remembered", [])
    for number in ASKING:
        signal.signal(number, signal.SIG_DFL)
    (ours,) = [plugin for plugin in getPlugins(IServiceMaker) if plugin.tapname == "mailismus"]
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL, "another plugin's run is none of our business"
    ours.options()
    assert [signal.getsignal(number) for number in ASKING] == [remember()._on_signal] * 2
