"""Fit: what hosts did lately, as habits of simulated sites (pure).

*Rules*
- Half of the time that a session takes to begin is a round trip, unless that is longer than a quarter of what a message
  takes: then the rest is the greeting's. What a message takes beyond its round trips is the final dot's, drawn for each
  message from the last ones.
- A site with several hosts has the widest limits that one of them said, together.
- What is not known is that of a host that is well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mailismus.observe.habits import AttemptClass, HopHabits, HostHabits
from mailismus.plan.site import TOO_FAST, TOO_MANY, SiteHabits, SiteKind

_STEPS, _STEPS_PIPELINED = 4, 2
"""Round trips of a message with one recipient."""
MUTE_S = 5.0
"""A connection that failed behind so long was not refused: nobody answered."""
WELL = SiteHabits()


def median(values: Sequence[float]) -> float:
    """The middle one of quantiles; 0: there are none."""
    return values[len(values) // 2] if values else 0.0


def habits_of(hops: Sequence[HopHabits], hosts: Sequence[HostHabits]) -> SiteHabits:
    """The habits of the site with these hosts, to which mail of these next hops goes."""
    is_pipelining = all(host.is_pipelining for host in hosts)
    steps = _STEPS_PIPELINED if is_pipelining else _STEPS
    setups = [median(host.setup_s) for host in hosts if host.setup_s]
    sendings = [median(hop.sending_s) for hop in hops if hop.sending_s]
    setup_s = min(setups, default=2 * WELL.round_trip_s)
    trip_s = setup_s / 2
    if sendings:
        trip_s = min(trip_s, min(sendings) / steps)
    most_a_minute = sum(hop.most_a_minute for hop in hops)
    rates = [hop.replies[AttemptClass.RATE] for hop in hops if AttemptClass.RATE in hop.replies]
    most_connections = sum(host.most_connections for host in hosts)
    refusals = [host.refusal for host in hosts if host.refusal]
    return SiteHabits(
        SiteKind.RATED if most_a_minute else SiteKind.CAPPED if most_connections else SiteKind.FAST,
        round_trip_s=trip_s,
        reply_s=0.0,
        dot_s=max(0.0, median(sendings) - steps * trip_s) if sendings else WELL.dot_s,
        most_connections=most_connections,
        most_a_minute=most_a_minute,
        greeting_s=max(0.0, setup_s - 2 * trip_s),
        is_pipelining=is_pipelining,
        too_many=refusals[0] if refusals else TOO_MANY,
        too_fast=rates[0] if rates else TOO_FAST,
    )


def drawn_dots(
    hops: Sequence[HopHabits], habits: SiteHabits, pick: Callable[[Sequence[float]], float]
) -> Callable[[], float] | None:
    """Draws the times of replies to the final dot; None: they are all the same."""
    steps = _STEPS_PIPELINED if habits.is_pipelining else _STEPS
    taken_s = steps * habits.round_trip_s
    dots = [max(0.0, sending_s - taken_s) for hop in hops for sending_s in hop.sending_s]
    return (lambda: pick(dots)) if dots else None


def said_of(hops: Sequence[HopHabits], habits: SiteHabits) -> list[str]:
    """What limits a site, in words."""
    found = []
    if habits.most_a_minute:
        found.append(f"takes {habits.most_a_minute} messages a minute")
    if habits.most_connections:
        found.append(f"takes {habits.most_connections} connections")
    slow_s = median([one for hop in hops for one in hop.sending_s])
    if slow_s >= 1.0:
        found.append(f"takes {slow_s:.0f} s for a message")
    return found
