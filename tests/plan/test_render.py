"""Forecasts as text and JSON: what is said, and that words of peers are harmless."""

from __future__ import annotations

import json

import attrs

from mailismus.mail.reply import Reply
from mailismus.observe.habits import Habits
from mailismus.plan.forecast import Forecast
from mailismus.plan.render import MAX_HOPS, compared_lines, forecast_lines, json_line
from mailismus.plan.simulate import PlanOrder, simulate
from tests.plan import samples
from tests.plan.samples import backlog, deferred, hop, host, snapshot

ORDER = PlanOrder(600.0, 60.0, 1)
HOSTILE = Reply(452, b"4.2.2", b"full \x1b]0;x\x07 \xe2\x80\xae\xff")


def forecast(count: int = 100, **facts: object) -> Forecast:
    known = samples.habits(hop("b.example", **facts), host())
    return simulate(snapshot(backlog(b"b.example", count)), known, samples.settings(maxtime_s=86400.0), ORDER)


def test_what_goes_away_says_when() -> None:
    lines = list(forecast_lines(forecast()))
    assert lines[0].startswith("100 entries from ")
    assert ", 10m ahead, until " in lines[0]
    assert "100 delivered; half of them by " in lines[1]
    assert "; all gone at " in lines[1]
    assert lines[3].split()[:4] == ["next", "hop", "waits", "sent"]
    assert lines[4].split()[:6] == ["b.example", "100", "100", "0", "0", "0"]


def test_what_stays_says_until_when_at_least() -> None:
    found = forecast(1000, most_a_minute=20)
    lines = list(forecast_lines(found))
    assert "not gone by" in lines[1]
    assert ", at this pace not until " in lines[1]
    assert " not until " in lines[4]
    assert lines[5].startswith("    takes 20 messages a minute")
    cut = attrs.evolve(found, is_cut=True, left_out=7, held=3)
    said = "\n".join(forecast_lines(cut))
    assert "Processor time was over at " in said
    assert "7 entries that are due last are left out" in said
    assert "3 held entries wait for their release." in said
    said = "\n".join(forecast_lines(attrs.evolve(found, left_out=1, held=1)))
    assert "1 entry that is due last is left out" in said
    assert "1 held entry waits for its release." in said


def test_a_table_fits_a_terminal_and_is_bounded() -> None:
    messages = [one for number in range(MAX_HOPS + 10) for one in backlog(b"d%d.%b.example" % (number, b"x" * 50), 1)]
    for number, one in enumerate(messages):
        one.spool_id += number  # type: ignore[assignment] # a number
    lines = list(forecast_lines(simulate(snapshot(messages), Habits(), samples.settings(), ORDER)))
    assert lines[-1] == "and 10 next hops with 10 entries"
    assert max(map(len, lines)) <= 100


def test_words_of_peers_are_harmless() -> None:
    messages = [deferred(1, b"u\x1b[2J@b.example", HOSTILE)]
    wanted = [queue_id for one in messages for queue_id in one.queue_ids()]
    known = samples.habits(hop("b.example"), host())
    found = simulate(snapshot(messages, wanted), known, samples.settings(), ORDER)
    text = "\n".join(forecast_lines(found))
    assert all(line.isprintable() for line in text.split("\n"))
    assert "u\\x1b[2J@b.example" in text
    assert json_line(found, None, "").isprintable()


def test_a_change_is_compared() -> None:
    before, after = forecast(200), forecast(200, most_a_minute=5)
    lines = list(compared_lines(before, after, "color=red"))
    assert lines[0] == "With color=red:"
    assert lines[5].split()[:4] == ["b.example", "200", str(after.whole.delivered), "0"]
    assert list(compared_lines(before, before, "x"))[-1] == "No next hop is served in another way."
    value = json.loads(json_line(before, after, "color=red"))
    assert value["change"] == "color=red"
    assert value["changed"]["whole"]["delivered"] == after.whole.delivered
