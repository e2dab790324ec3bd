"""Detail: one next hop, failure or hold in full, as lines (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo

from mailismus.observe.amounts import amount, lasting, lately, moment
from mailismus.observe.figures import HopRow, Picture
from mailismus.observe.grades import BAD, PLAIN, grade_of_hold
from mailismus.observe.hold_words import phrase_of, why_of
from mailismus.observe.overview import Failure
from mailismus.top.cells import Line, Span, clean, fold, line_of
from mailismus.top.state import Pane, ViewState
from mailismus.top.table import DIM, HEAD, failure_key, said_of

MOST_FAILURES = 10
INDENT = "  "
GONE = "It is not among those that are shown any more. Esc: back"


def detail_of(
    picture: Picture, state: ViewState, entries: Sequence[str], width: int, zone: tzinfo | None = None
) -> list[Line]:
    """All lines of the opened row, however many. `entries`: what the server told of its entries."""
    spans = _hop(picture, state, entries, width, zone)
    if state.pane is Pane.FAILURES:
        found = next((one for one in picture.failures if failure_key(one) == state.opened), None)
        spans = _gone() if found is None else _failure(found, width, zone)
    elif state.pane is Pane.HOLDS:
        spans = _hold(picture, state, width)
    return [line_of(one, width) for one in spans]


def _gone() -> Iterator[list[Span]]:
    yield [Span(DIM, GONE)]


def _hop(
    picture: Picture, state: ViewState, entries: Sequence[str], width: int, zone: tzinfo | None
) -> Iterator[list[Span]]:
    row = next((row for row in picture.rows if clean(row.figures.name) == state.opened), None)
    yield [Span(HEAD, state.opened)]
    if row is None:
        yield [Span(DIM, GONE)]
    else:
        yield from _figures_of(row, width)
    if picture.known:
        yield []
        yield [Span(HEAD, "What is known of its hosts")]
        for sentence in picture.known:
            yield from _folded(clean(sentence), PLAIN, width)
    yield []
    yield [Span(HEAD, "Its entries, the first ones that the server finds")]
    for text in entries:
        yield from _folded(clean(text), PLAIN, width)
    failures = [one for one in picture.failures if clean(one.next_hop) == state.opened][:MOST_FAILURES]
    if failures:
        yield []
        yield [Span(HEAD, "Its last failures")]
        for one in failures:
            text = f"{lately(one.at, picture.now, zone)} {one.status} {one.recipient}, {said_of(one)}"
            yield from _folded(clean(text), PLAIN, width)


def _figures_of(row: HopRow, width: int) -> Iterator[list[Span]]:
    figures = row.figures
    waits = f", waiting for {lasting(figures.waits_s)}" if figures.waits_s >= 1 else ""
    yield [Span(PLAIN, f"{INDENT}{figures.entries} in hand{waits}; connections: {figures.connections}")]
    rates = f"{amount(row.delivered)} sent/s, {amount(row.deferred)} deferred/s, {amount(row.failed)} failed/s"
    sums = f"{figures.delivered} sent, {figures.deferred} deferred, {figures.failed} failed since it came into use"
    yield from _folded(f"{rates}; {sums}", PLAIN, width)
    if figures.reason:
        yield from _folded(clean(why_of(figures.hold, figures.reason)), grade_of_hold(figures.hold), width)


def _failure(one: Failure, width: int, zone: tzinfo | None) -> Iterator[list[Span]]:
    others = f" and {one.recipients - 1} more" if one.recipients > 1 else ""
    rows = (
        ("status", one.status),
        ("time", moment(one.at, zone, "%b %d %H:%M:%S")),
        ("recipient", one.recipient + others),
        ("next hop", one.next_hop),
        ("host", one.host or "none was reached"),
        ("reply", one.reply),
    )
    for label, text in rows:
        first, *rest = fold(clean(text), max(10, width - 12))
        yield [Span(HEAD, label.ljust(12)), Span(BAD if label == "status" and text != "deferred" else PLAIN, first)]
        for more in rest:
            yield [Span(PLAIN, " " * 12 + more)]


def _hold(picture: Picture, state: ViewState, width: int) -> Iterator[list[Span]]:
    found = next((one for one in picture.holds if f"{one.hold} {clean(one.subject)}" == state.opened), None)
    if found is None:
        yield from _gone()
        return
    yield [Span(HEAD, clean(f"{phrase_of(found.hold)}: {found.subject}"))]
    yield from _folded(clean(found.sentence), grade_of_hold(found.hold), width)


def _folded(text: str, style: str, width: int) -> Iterator[list[Span]]:
    first, *rest = fold(text, max(10, width - 2 * len(INDENT)))
    yield [Span(style, INDENT + first)]
    for line in rest:
        yield [Span(style, INDENT * 2 + line)]
