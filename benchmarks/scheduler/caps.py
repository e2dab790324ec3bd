"""Limits of receivers: a host that domains share, a host with a cap, a rate by the minute.

- *shared*: messages to three domains with one MX host, and as many to one of them: the host has no more connections.
- *cap*: a host takes three connections and says 421 to more, while mail for it waits. It is refused 421 ten times at most,
  and gets 80 % of what three connections can take. Then the cap is gone: within 60 s the host has `maxserverconnections`.
- *rate*: a destination with 60 messages a minute gets 61 in no span of 60 s; and it gets most of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import attrs

from benchmarks.scheduler.bed import SEEN_S, Scene, Settings, bed
from benchmarks.scheduler.checks import Check, Played, at_least, at_most
from benchmarks.scheduler.client import Message, send
from benchmarks.scheduler.events import Event, grown_at, most_within, peak, refusals, spans
from benchmarks.scheduler.world import DOMAIN, Behaviour, Host, hosts
from benchmarks.stage.progress import say

SHARED = Behaviour(reply_s=0.05)
SHARED_MESSAGES = 300
CAP, LIMIT = 3, 20
"""The cap; `maxserverconnections`, by default."""
CAPPED = Behaviour(reply_s=0.1, cap=CAP)
REPLIES = 4
"""Of a message on a connection that stands: to MAIL, RCPT, DATA and the final dot."""
CAPPED_S, GROWN_S = 90.0, 60.0
REFUSED, TAKEN = 10, 0.8
A_MINUTE, RATE_S = 60, 130.0
MINUTE_SHARE = 0.8
ARRIVAL_S = 60.0


def _messages(domains: Sequence[str], count: int) -> list[Message]:
    return [Message(f"s{number}@from.example", (f"r{number}@{domains[number % len(domains)]}",)) for number in range(count)]


# Three domains, one host


def judge_shared(one: int, three: int) -> list[Check]:
    """Of the most connections at once, for one domain and for three."""
    return [at_least("connections for one domain", one, 2), at_most("connections for three domains", three, one)]


def play_shared(scene: Scene) -> Played:
    """Raises: TrialError."""
    host = Host("127.40.0.1", SHARED, tuple(f"d{index}.{DOMAIN}" for index in range(3)))
    most, notes = [], []
    for domains in (host.domains[:1], host.domains):
        messages = _messages(domains, scene.count(SHARED_MESSAGES, 60))
        with bed(scene, [host]) as made:
            asyncio.run(send(made.port, messages))
            missing = made.await_arrivals([message.key for message in messages], ARRIVAL_S)
            found = spans(made.events())
            most.append(peak(found))
            notes.append(
                f"{len(domains)} domains: at most {most[-1]} connections at once, {len(found)} in all, {missing} messages "
                f"not arrived; others {made.others_share():.0%}"
            )
            say(notes[-1])
    return Played(notes, judge_shared(*most))


# A cap


@attrs.frozen
class Capped:
    """A host with a cap that is lifted."""

    refused: int
    """421s until then."""
    taken: float
    """Messages until then, of those that it could have taken."""
    grown_s: float
    """Until it had `LIMIT` connections; infinite: it never had."""


def judge_cap(measured: Capped) -> list[Check]:
    """Of the figures."""
    return [
        at_most("421s of a host that takes three connections", measured.refused, REFUSED),
        at_least("messages that it took, of those that it could have taken", measured.taken, TAKEN),
        at_most(f"{LIMIT} connections once the cap is gone", measured.grown_s, GROWN_S, " s"),
    ]


def capped(events: Sequence[Event], begin_s: float, lifted_s: float) -> Capped:
    """The figures from what the sink saw since mail waited for the host (pure)."""
    before = [event for event in events if event.at_s < lifted_s]
    possible = CAP * (lifted_s - begin_s) / (REPLIES * CAPPED.reply_s)
    taken = sum(event.word == "dot" for event in before)
    return Capped(sum(refusals(before).values()), taken / possible, grown_at(spans(events), LIMIT, lifted_s))


def play_cap(scene: Scene) -> Played:
    """Raises: TrialError."""
    host, capped_s = hosts("capped", 41, 1, CAPPED)[0], scene.seconds(CAPPED_S)
    per_s = 1 / (REPLIES * CAPPED.reply_s)
    messages = _messages(host.domains, round(per_s * (CAP * capped_s + LIMIT * GROWN_S)) + 100)
    with bed(scene, [host]) as made:
        sent = asyncio.run(send(made.port, messages))
        begin_s = sent[0].taken_at_s
        time.sleep(max(0.0, begin_s + capped_s - time.monotonic()))
        made.lift_caps()
        lifted_s = time.monotonic()
        while time.monotonic() < lifted_s + GROWN_S:
            time.sleep(1.0)
            if grown_at(spans(made.events()), LIMIT, lifted_s) < GROWN_S:
                break
        time.sleep(SEEN_S)
        measured = capped(made.events(), begin_s, lifted_s)
        notes = [
            f"{measured.refused} 421s in {lifted_s - begin_s:.0f} s, {measured.taken:.0%} of what it takes; "
            f"{LIMIT} connections {measured.grown_s:.1f} s after the cap was gone; others {made.others_share():.0%}"
        ]
    say(notes[0])
    return Played(notes, judge_cap(measured))


# A rate


def judge_rate(most: int, share: float) -> list[Check]:
    """Of the most messages in any 60 s, and of all that came, as a share of what may have come."""
    return [
        at_most("messages in any 60 s", most, A_MINUTE),
        at_least("messages that came, of those that the rate allows", share, MINUTE_SHARE),
    ]


def play_rate(scene: Scene) -> Played:
    """Raises: TrialError."""
    host, watched_s = hosts("slowly", 42, 1, Behaviour())[0], scene.seconds(RATE_S)
    messages = _messages(host.domains, 4 * A_MINUTE)
    deliver = f'<destinations><destination domains="{host.domain}" messages_per_minute="{A_MINUTE}"/></destinations>'
    with bed(scene, [host], Settings(deliver=deliver)) as made:
        began_s = asyncio.run(send(made.port, messages))[0].began_at_s
        time.sleep(max(0.0, began_s + watched_s - time.monotonic()))
        begun = [event.at_s for event in made.events() if event.word == "mail"]
        most, share = most_within(begun, 60.0), len(begun) / (A_MINUTE * watched_s / 60.0)
        notes = [f"{len(begun)} messages in {watched_s:.0f} s, at most {most} in 60 s; others {made.others_share():.0%}"]
    say(notes[0])
    return Played(notes, judge_rate(most, share))
