"""A forecast as text and JSON (pure).

*Rules*: every text of a peer has been escaped. Times are those of the reader's zone in text, whole UTC seconds in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from mailismus.config.values.units import show_time_ms
from mailismus.deliver.why.sentences import Times
from mailismus.plan.forecast import EntryForecast, Forecast, HopForecast

MAX_HOPS = 50
"""Next hops of a table; the others in one line."""
_NAME = 20
_COLUMNS = (("waits", 7), ("sent", 7), ("bounced", 7), ("expired", 7), ("left", 7))
_NAMES = " ".join(f"{name:>{width}}" for name, width in _COLUMNS)
_HEAD = f"{'next hop':<{_NAME}} {_NAMES}  {'95 % by':<8}  gone"
_COMPARED = f"{'next hop':<{_NAME}} {'sent':>7} {'then':>7} {'left':>7} {'then':>7}  {'gone':<18} then"
_NOTHING = "-"


def forecast_lines(forecast: Forecast) -> Iterator[str]:
    """One forecast, as lines."""
    times = Times(forecast.begins_at, forecast.begins_at)
    yield from _head(forecast, times)
    if not forecast.whole.entries:
        return
    if forecast.entries:
        yield ""
        for entry in forecast.entries:
            yield from _entry_lines(entry, times)
    yield ""
    yield _HEAD
    for hop in forecast.hops[:MAX_HOPS]:
        yield _row(hop, times)
        if hop.reasons:
            yield f"{'':<4}{'; '.join(hop.reasons)}"
    if len(forecast.hops) > MAX_HOPS:
        rest = forecast.hops[MAX_HOPS:]
        entries = _counted(sum(hop.entries for hop in rest), "entry", "entries")
        yield f"and {_counted(len(rest), 'next hop', 'next hops')} with {entries}"


def compared_lines(before: Forecast, after: Forecast, change: str) -> Iterator[str]:
    """What a change does, as lines."""
    times = Times(before.begins_at, before.begins_at)
    yield f"With {change}:"
    yield f"  as it is: {_sentence(before, times)}"
    yield f"  then:     {_sentence(after, times)}"
    then = {hop.name: hop for hop in after.hops}
    rows = [(hop, then[hop.name]) for hop in before.hops if hop.name in then and _differs(hop, then[hop.name])]
    if not rows:
        yield "No next hop is served in another way."
        return
    yield ""
    yield _COMPARED
    for hop, other in rows[:MAX_HOPS]:
        counts = f"{hop.delivered:>7,} {other.delivered:>7,} {hop.left:>7,} {other.left:>7,}"
        yield f"{_cut(hop.name):<{_NAME}} {counts}  {_gone(hop, times):<18} {_gone(other, times)}"


def forecast_json(forecast: Forecast) -> dict[str, object]:
    """One forecast, as a JSON object."""
    whole = forecast.whole
    value: dict[str, object] = {
        "begins": int(forecast.begins_at),
        "until": int(forecast.until),
        "ends": int(forecast.ends_at),
        "cut": forecast.is_cut,
        "left_out": forecast.left_out,
        "held": forecast.held,
        "bounces": forecast.failed,
        "whole": _hop_json(whole),
        "next_hops": [{"name": hop.name, **_hop_json(hop)} for hop in forecast.hops],
    }
    if forecast.entries:
        value["entries"] = [_entry_json(entry) for entry in forecast.entries]
    return value


def json_line(before: Forecast, after: Forecast | None, change: str) -> str:
    """The answer of the command as one line of JSON."""
    value = forecast_json(before)
    if after is not None:
        value["change"] = change
        value["changed"] = forecast_json(after)
    return json.dumps(value)


def _head(forecast: Forecast, times: Times) -> Iterator[str]:
    begins, ends = times.at(forecast.begins_at), times.at(forecast.until)
    span = show_time_ms(round((forecast.until - forecast.begins_at) * 1000))
    count = forecast.whole.entries
    if not count:
        yield "Nothing waits that is asked about."
    else:
        yield f"{_counted(count, 'entry', 'entries')} from {begins}, {span} ahead, until {ends}:"
        yield f"  {_sentence(forecast, times)}"
    if forecast.is_cut:
        yield f"  Processor time was over at {times.at(forecast.ends_at)}: what comes later is not told (--cpu)."
    if forecast.left_out:
        left_out = _counted(forecast.left_out, "entry that is due last is", "entries that are due last are")
        yield f"  {left_out} left out, and would take longer (--limit)."
    if forecast.held:
        held = _counted(forecast.held, "held entry waits for its", "held entries wait for their")
        yield f"  {held} release."


def _sentence(forecast: Forecast, times: Times) -> str:
    whole = forecast.whole
    parts = [f"{whole.delivered:,} delivered"]
    if whole.half_at is not None and whole.most_at is not None:
        parts.append(f"half of them by {times.at(whole.half_at)}, 95 % by {times.at(whole.most_at)}")
    if whole.bounced:
        parts.append(f"{whole.bounced:,} refused")
    if whole.expired:
        parts.append(f"{whole.expired:,} expired")
    parts.append(_rest(whole, forecast, times))
    return "; ".join(parts)


def _rest(hop: HopForecast, forecast: Forecast, times: Times) -> str:
    if hop.gone_at is not None:
        return f"all gone at {times.at(hop.gone_at)}"
    ends = f"{hop.left:,} not gone by {times.at(forecast.ends_at)}"
    return ends if hop.later_at is None else f"{ends}, at this pace not until {times.at(hop.later_at)}"


def _row(hop: HopForecast, times: Times) -> str:
    numbers = hop.entries, hop.delivered, hop.bounced, hop.expired, hop.left
    counts = " ".join(f"{number:>{width},}" for number, (_, width) in zip(numbers, _COLUMNS, strict=True))
    return f"{_cut(hop.name):<{_NAME}} {counts}  {_at(hop.most_at, times):<8}  {_gone(hop, times)}"


def _gone(hop: HopForecast, times: Times) -> str:
    if hop.gone_at is not None:
        return times.at(hop.gone_at)
    return "not yet" if hop.later_at is None else f"not until {times.at(hop.later_at)}"


def _entry_lines(entry: EntryForecast, times: Times) -> Iterator[str]:
    yield f"{entry.queue_id} {entry.recipient} ({entry.next_hop})"
    for attempt in entry.attempts:
        yield f"    {times.at(attempt.at)} {attempt.status}: {attempt.reply}"
    if entry.next_at is not None:
        yield f"    due at {times.at(entry.next_at)}"


def _differs(one: HopForecast, other: HopForecast) -> bool:
    def facts(hop: HopForecast) -> Sequence[object]:
        moments = (None if at is None else round(at / 5) for at in (hop.half_at, hop.most_at, hop.gone_at))
        return hop.delivered, hop.bounced, hop.expired, hop.left, *moments

    return facts(one) != facts(other)


def _at(at: float | None, times: Times) -> str:
    return _NOTHING if at is None else times.at(at)


def _cut(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 3]}..."


def _counted(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"


def _hop_json(hop: HopForecast) -> dict[str, object]:
    moments = {"half": hop.half_at, "most": hop.most_at, "gone": hop.gone_at, "not_before": hop.later_at}
    return {
        "entries": hop.entries,
        "delivered": hop.delivered,
        "bounced": hop.bounced,
        "expired": hop.expired,
        "left": hop.left,
        "attempts": hop.attempts,
        **{name: None if at is None else int(at) for name, at in moments.items()},
        "reasons": list(hop.reasons),
    }


def _entry_json(entry: EntryForecast) -> dict[str, object]:
    return {
        "queue_id": entry.queue_id,
        "recipient": entry.recipient,
        "next_hop": entry.next_hop,
        "attempts": [{"at": int(one.at), "status": one.status, "reply": one.reply} for one in entry.attempts],
        "next_attempt": None if entry.next_at is None else int(entry.next_at),
    }
