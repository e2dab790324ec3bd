"""Verbs: the answer that a request gets, how long it takes, and what the user wrote for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import attrs

from mailismus.admin.model.shape import By
from mailismus.admin.protocol.habits import HABITS
from mailismus.admin.protocol.injecting import INJECT
from mailismus.admin.protocol.overview import OVERVIEW
from mailismus.admin.protocol.servers import SERVERS
from mailismus.admin.protocol.wire import Refusal, Request
from mailismus.admin.server.answers import (
    ContentAnswer,
    CountAnswer,
    FlushAnswer,
    ListAnswer,
    LookableQueue,
    PlanAnswer,
    ShapeAnswer,
    VerbAnswer,
    WhyAnswer,
)
from mailismus.admin.server.servers import ServersAnswer
from mailismus.admin.server.settings import SettingsAnswer
from mailismus.config.values.effective import Effective
from mailismus.queue.filter import FilterError, parse_filter, parse_subject
from mailismus.queue.interface import Filter

SETTINGS = "settings"
"""Asks for the settings in force: there is no FILTER."""
WHY = "why"
"""Asks for one id, address or domain: there is no FILTER."""


def begin_answer(
    request: Request, queue: LookableQueue, now: float, settings: Callable[[], Sequence[Effective]]
) -> VerbAnswer:
    """The answer to a request. `now`: UTC seconds, what ages count from; `settings`: those in force. Raises `Refusal`."""
    if request.verb == SETTINGS:
        return SettingsAnswer(settings())
    if request.verb == WHY:
        return _why(request, queue)
    verb = _VERBS.get(request.verb)
    if verb is None:
        raise Refusal(os.EX_UNAVAILABLE, "the running server is of a version that does not know this command")
    try:
        wanted = parse_filter(request.words, now)
    except FilterError as error:
        raise Refusal(os.EX_USAGE, str(error)) from None
    return verb.begin(request, queue, wanted, now)


def _why(request: Request, queue: LookableQueue) -> VerbAnswer:
    try:
        (word,) = request.words
        return WhyAnswer(queue, parse_subject(word), request.limit)
    except ValueError as error:
        text = str(error) if isinstance(error, FilterError) else "why: write one ID, address or domain"
        raise Refusal(os.EX_USAGE, text) from None


def _list(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> VerbAnswer:
    return ListAnswer(queue, wanted, request.limit)


def _entries(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> VerbAnswer:
    return ListAnswer(queue, wanted, request.limit, is_bare=True)


def _count(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> VerbAnswer:
    return CountAnswer(queue, wanted if request.words else None)


def _plan(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> VerbAnswer:
    plan = queue.counting_plan()
    if plan is None or request.words:
        raise Refusal(os.EX_UNAVAILABLE, "the server alone can count this")
    return PlanAnswer(plan)


def _servers(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> VerbAnswer:
    if request.words:
        raise Refusal(os.EX_USAGE, "all servers are told: write no filter")
    return ServersAnswer(queue.servers)


def _shape(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> VerbAnswer:
    try:
        by = By(request.by)
    except ValueError:
        raise Refusal(os.EX_USAGE, f"the shape by what: write {', '.join(by.value for by in By)}") from None
    return ShapeAnswer(queue, wanted, by, now)


def _content(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> VerbAnswer:
    if wanted.spool_id is None:
        raise Refusal(os.EX_USAGE, "the content of which message: write its ID")
    return ContentAnswer(queue, wanted.spool_id)


def _flush(request: Request, queue: LookableQueue, wanted: Filter, now: float) -> VerbAnswer:
    return FlushAnswer(queue, wanted if request.words else None)


@attrs.frozen
class _Verb:
    """What a request may ask for. `command`: what the user wrote."""

    begin: Callable[[Request, LookableQueue, Filter, float], VerbAnswer]
    command: str
    is_long: bool = False
    """Its answer takes as long as the client reads."""


_VERBS = {
    "list": _Verb(_list, "queue list", is_long=True),
    "entries": _Verb(_entries, "plan", is_long=True),
    "count": _Verb(_count, "queue count"),
    "plan": _Verb(_plan, "queue count"),
    "shape": _Verb(_shape, "queue shape"),
    SERVERS: _Verb(_servers, "queue servers"),
    "content": _Verb(_content, "queue show", is_long=True),
    "flush": _Verb(_flush, "queue flush"),
}


def command_of(request: Request) -> str:
    """What the user wrote, or might have: whatever stands in a filter stands here too."""
    if request.verb == SETTINGS:
        return "config diff"
    if request.verb in (WHY, OVERVIEW):
        return " ".join((WHY if request.verb == WHY else "top", *request.words))
    if request.verb == HABITS:
        return "plan"
    verb = _VERBS.get(request.verb)
    if "kind" in request.order:
        return " ".join((f"queue {request.order['kind']}", *request.words))
    return " ".join((verb.command if verb is not None else request.verb, *request.words))


def takes_long(request: Request) -> bool:
    """Whether the answer takes as long as the client reads."""
    verb = _VERBS.get(request.verb)
    return request.verb in (WHY, INJECT) or (verb is not None and verb.is_long)
