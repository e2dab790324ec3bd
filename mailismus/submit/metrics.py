"""Metrics of submission, per listener, by the names of the configuration."""

from __future__ import annotations

from collections.abc import Callable

from mailismus.observe.metrics import Metric, Number, counter, gauge
from mailismus.submit.sessions import SessionFactory
from mailismus.submit.task import SubmitTask

Counts = dict[tuple[str, ...], Number]


def _each(read: Callable[[SessionFactory], int]) -> Callable[[SubmitTask], Counts]:
    return lambda task: {(name,): read(factory) for name, factory in zip(task.names, task.factories, strict=True)}


def _refused(task: SubmitTask) -> Counts:
    return {
        (name, command.decode("ascii"), code.decode("ascii")): count
        for name, factory in zip(task.names, task.factories, strict=True)
        for (command, code), count in factory.desk.refused.items()
    }


def _endings(task: SubmitTask) -> Counts:
    return {
        (name, ending.name.lower()): count
        for name, factory in zip(task.names, task.factories, strict=True)
        for ending, count in factory.endings.count.items()
    }


METRICS: tuple[Metric[SubmitTask], ...] = (
    gauge(
        "mailismus_submit_connections", "Connections of clients that are open.", _each(lambda f: len(f.sessions)), "listener"
    ),
    counter("mailismus_submit_connections_total", "Connections of clients.", _each(lambda f: f.connections), "listener"),
    counter(
        "mailismus_submit_endings_total",
        "Connections that we turned away or ended, by reason.",
        _endings,
        "listener",
        "reason",
    ),
    gauge("mailismus_submit_crowded", "1: strangers have less time.", _each(lambda f: int(f.is_crowded)), "listener"),
    counter(
        "mailismus_submit_accept_pauses_total",
        "How often clients had to wait because no connection could be accepted (no file descriptors).",
        lambda t: t.accept_pauses,
    ),
    counter("mailismus_submit_messages_total", "Messages taken.", _each(lambda f: f.desk.messages), "listener"),
    counter("mailismus_submit_recipients_total", "Their recipients.", _each(lambda f: f.desk.recipients), "listener"),
    counter(
        "mailismus_submit_content_bytes_total",
        "Their content, as stored.",
        _each(lambda f: f.desk.content_bytes),
        "listener",
    ),
    counter(
        "mailismus_submit_refused_total",
        "Commands and messages refused, by command (END-OF-MESSAGE: the message itself) and reply code.",
        _refused,
        "listener",
        "command",
        "code",
    ),
)
