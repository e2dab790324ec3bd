"""Overviews of servers that are busy, idle, in trouble, and of peers who mean harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mailismus.observe.figures import Picture, compare
from mailismus.observe.overview import Failure, Figure, Holding, NextHopFigures, Overview, Spread
from mailismus.top.cells import Line, width_of

NOW = 1_795_000_000.0
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07",
    "line\r\nend\x85\u2028",
    "right-to-left \u202e\u05d0\u05d1\u0627",
    "e\u0301\u0302\u0303\u0304 combining",
    "日本語テスト" * 9,
    "\u1100\u1161\u11a8 \ud55c",
    "flags \U0001f1e9\U0001f1ea \U0001f468\u200d\U0001f469",
    "\ud800 \udcff alone",
    "z\u200bero\ufeff\u00ad",
    "\t\x08\x7f\x00",
    "a" * 700,
)


def hop(name: str, entries: int = 0, **fields: object) -> NextHopFigures:
    """One next hop."""
    values: dict[str, Any] = {"connections": 0, "waits_s": 0.0, "hold": "", "reason": ""}
    values |= {"delivered": 0, "deferred": 0, "failed": 0, **fields}
    return NextHopFigures(name, entries, **values)


def figures(step: int) -> Mapping[str, Figure]:
    """Figures that grow with `step`: 10 messages a step come, 8 go."""
    return {
        "mailismus_submit_connections": {"smtp": 3},
        "mailismus_submit_messages_total": {"smtp": 10 * step},
        "mailismus_submit_recipients_total": {"smtp": 25 * step},
        "mailismus_submit_content_bytes_total": {"smtp": 45_000 * step},
        "mailismus_submit_refused_total": {"smtp RCPT 550": step},
        "mailismus_deliveries_total": {"sent": 8 * step, "deferred": step, "bounced": 0, "expired": 0},
        "mailismus_deliver_held_entries": 48,
        "mailismus_deliver_waiting_jobs": 0,
        "mailismus_deliver_content_bytes_total": 36_000 * step,
        "mailismus_deliver_connections": 9,
        "mailismus_deliver_troubled_hosts": 1,
        "mailismus_queue_entries": {"incoming": 48, "deferred": 4310, "bounces": 2},
        "mailismus_queue_refusing": {"disk": 0, "memory": 0},
        "mailismus_journal_batches_total": 12 * step,
        "mailismus_journal_commits_total": 40 * step,
        "mailismus_journal_failures_total": 0,
        "mailismus_journal_barrier_seconds": Spread((0.001, 0.01, 0.1), (2 * step, 9 * step, step, 0), 0.048 * step),
        "mailismus_disk_free_bytes": {"queue": 48e9},
        "mailismus_disk_size_bytes": {"queue": 120e9},
    }


def busy(step: int = 1) -> Overview:
    """A server with next hops of all kinds, `step` seconds after its start."""
    later = "mx.greylisting.test: 451 4.7.1 Greylisted, try again in 20 seconds"
    hops = (
        hop("well.test", 12, connections=4, hold="underway", reason="in delivery", delivered=7 * step),
        hop(
            "slow.test",
            30,
            connections=2,
            waits_s=45.0,
            hold="connections",
            delivered=step,
            reason=("waits for mx.slow.test: 2 of 2 connections busy"),
        ),
        hop(
            "dead.test",
            6,
            waits_s=310.0,
            hold="dead",
            deferred=step,
            reason=("mx.dead.test is left alone from 14:02 until 14:07:31, after 3 failures: connection refused"),
        ),
        hop("greylisting.test", hold="later", reason=later, deferred=3),
        hop("local users", delivered=3),
    )
    grey, full = "mx.greylisting.test[127.0.0.4]:2525", "mx.full.test[127.0.0.6]:2525"
    unknown = "550 5.1.1 No such user"
    failures = (
        Failure(NOW + step - 1, "deferred", "greylisting.test", "ann@greylisting.test", 1, grey, later[21:]),
        Failure(NOW + step - 4, "bounced", "full.test", "no-such-user@full.test", 3, full, unknown),
    )
    holds = (Holding("dead", "mx.dead.test", hops[2].reason), Holding("connections", "mx.slow.test", hops[1].reason))
    return Overview(NOW + step, 100.0 + step, "0.1.0", "mx.example.net", 0.12 * step, figures(step), hops, holds, failures)


def idle(step: int = 1) -> Overview:
    """A server that has had no mail."""
    return Overview(NOW + step, 100.0 + step, "0.1.0", "mx.example.net", 0.001 * step, {}, (), (), ())


def hostile(step: int = 1) -> Overview:
    """A server whose peers and clients mean harm."""
    hops = tuple(hop(text, 1, hold=text, reason=text) for text in HOSTILE)
    failures = tuple(Failure(NOW, text, text, text, 1, text, text) for text in HOSTILE)
    holds = tuple(Holding(text, text, text) for text in HOSTILE)
    wild: Mapping[str, Figure] = {"mailismus_queue_refusing": dict.fromkeys(HOSTILE, 1)}
    return Overview(NOW + step, 100.0 + step, HOSTILE[0], HOSTILE[2], 0.0, wild, hops, holds, failures, HOSTILE)


def picture_of(overview: Overview, earlier: Overview | None = None) -> Picture:
    """Its picture."""
    return compare(earlier, overview)


def text_of(lines: Sequence[Line]) -> str:
    """The lines without styles, as they stand on the screen."""
    return "\n".join("".join(span.text for span in line).rstrip() for line in lines)


def widths_of(lines: Sequence[Line]) -> set[int]:
    """The widths of the lines in cells."""
    return {sum(width_of(span.text) for span in line) for line in lines}
