"""All loads by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from benchmarks.scheduler import beside, caps, envelope, killed, pipelining, sick
from benchmarks.scheduler.bed import Scene
from benchmarks.scheduler.checks import Played


@attrs.frozen
class Case:
    """One load: what it is about, how to play it, and how many runs (of each kind) it has by default."""

    about: str
    play: Callable[[Scene], Played]
    runs: int = 1


CASES: Mapping[str, Case] = {
    "sick-hosts": Case("slow, silent, refusing and throttling hosts beside healthy ones", sick.play, 3),
    **{load.name: Case(load.about, beside.player(load), 5) for load in beside.LOADS},
    "envelope": Case("two envelopes of 50,000 recipients, and small messages", envelope.play),
    "shared-host": Case("three domains with one MX host", caps.play_shared),
    "cap": Case("a host that takes three connections, and later all", caps.play_cap),
    "rate": Case("60 messages a minute", caps.play_rate),
    "pipelining": Case("one kept connection at a distance", pipelining.play),
    "killed": Case("hosts that were dead before a kill", killed.play),
}
