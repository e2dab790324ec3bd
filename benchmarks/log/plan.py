"""The questions about the log, their choices, and the points that are measured for them, as values (pure).

A *point* is one choice under one load. All points of a question have the same figures.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs

NEVER_S = 1e6
SESSIONS = (1, 50)


class Load(enum.Enum):
    """What the queue does meanwhile."""

    MAIL = "mail"
    DRAIN = "drain"
    RETRIES = "retries"


class Storage(enum.Enum):
    """Where contents are, and what a deferral does to them."""

    REFERRED = "in the log, replacements refer to it"
    COPIED = "in the log, copied by each replacement"
    SPOOL = "in message files"
    SEVERAL = "in a log for each retry interval, copied from one to the next"


@attrs.frozen
class Choice:
    """What differs. Times in seconds."""

    name: str
    company_s: float = 0.010
    round_s: float = 10.0
    segments_a_round: int = 1
    has_positions_in_log: bool = False
    ahead_s: float = 600.0
    storage: Storage = Storage.REFERRED


@attrs.frozen
class Question:
    """One question, with its choices, the default first. `figures`: which of the load's are told; `seconds`: of a load of
    new mail."""

    name: str
    text: str
    load: Load
    choices: tuple[Choice, ...]
    figures: tuple[str, ...]
    seconds: float = 3.0
    is_killed: bool = False
    """The process ends as by `kill -9`, and the start over what it left is measured."""


@attrs.frozen
class Point:
    """One choice under one load."""

    question: str
    choice: str
    sessions: int


_MAIL = ("messages/s", "answer ms", "answer p95 ms", "barriers/msg", "device KiB/msg")

QUESTIONS = {
    question.name: question
    for question in (
        Question(
            "waiting",
            "How long may a delivery wait so that several share a barrier?",
            Load.MAIL,
            tuple(Choice(f"{ms} ms", company_s=ms / 1000) for ms in (10, 0, 1, 5)),
            (*_MAIL, "settled ms"),
        ),
        Question(
            "waiting-alone",
            "The same while no mail comes: a backlog that is delivered, so many at once.",
            Load.DRAIN,
            tuple(Choice(f"{ms} ms", company_s=ms / 1000) for ms in (10, 0, 1, 5)),
            ("deliveries/s", "barriers/delivery", "device KiB/delivery", "settled ms", "settled p95 ms"),
        ),
        Question(
            "positions",
            "Where are positions kept, and how often are they written?",
            Load.MAIL,
            (
                Choice("a file, 10 s or a segment"),
                Choice("a file, 1 s", round_s=1.0, segments_a_round=1000),
                Choice("a file, 10 s", segments_a_round=1000),
                Choice("a file, 64 MB", round_s=NEVER_S, segments_a_round=2),
                Choice("the log, 1 s", round_s=1.0, segments_a_round=1000, has_positions_in_log=True),
                Choice("the log, 10 s", segments_a_round=1000, has_positions_in_log=True),
                Choice("the log, 64 MB", round_s=NEVER_S, segments_a_round=2, has_positions_in_log=True),
            ),
            (*_MAIL, "positions", "used MiB", "open ms", "MiB read to open", "learnt ms", "MiB read in all"),
            seconds=11.0,
            is_killed=True,
        ),
        Question(
            "contents",
            "Is a small content in the log or in a message file? New mail.",
            Load.MAIL,
            (Choice("in the log"), Choice("in the spool", storage=Storage.SPOOL)),
            (*_MAIL, "files/msg"),
        ),
        Question(
            "retries",
            "What becomes of contents and envelopes when a message is deferred again and again? One queue or several?",
            Load.RETRIES,
            (
                Choice("referred to, 10 min ahead", company_s=0.0),
                Choice("referred to, 1 min ahead", company_s=0.0, ahead_s=60.0),
                Choice("referred to, 1 h ahead", company_s=0.0, ahead_s=3600.0),
                Choice("copied", company_s=0.0, storage=Storage.COPIED),
                Choice("in the spool", company_s=0.0, storage=Storage.SPOOL),
                Choice("several queues, copied", company_s=0.0, storage=Storage.SEVERAL),
            ),
            (
                *("attempts/s", "barriers/attempt", "KiB written/attempt", "device KiB/attempt", "KiB read/attempt"),
                *("live MiB", "used MiB", "used/live", "PSS MB"),
            ),
        ),
    )
}


def points(names: Sequence[str], sessions: Sequence[int] = SESSIONS) -> list[Point]:
    """All points of these questions. The choices of a question take turns."""
    return [Point(name, choice.name, count) for name in names for count in sessions for choice in QUESTIONS[name].choices]


def choice_of(point: Point) -> Choice:
    """The choice that a point is about."""
    return next(choice for choice in QUESTIONS[point.question].choices if choice.name == point.choice)
