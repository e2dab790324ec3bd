"""The watch over holds: counts and logs what begins to hold mail back, and what holds it no more.

*Rules*
- A hold is looked for every `LOOK_S` while mail is held, and counts when it has lasted for `AFTER_S`: what is over before
  that held nothing up. It has ended when it was not seen for `AFTER_S`; the death of a host begins and ends at once.
- A log record at the begin of each hold, at most `BURST` at a time and one in `REFILL_S` on average; how many were left out
  is told with the next one. If it has one, it has another at its end.
- At most `MAX_OPEN` holds are known at a time, dead hosts apart, of which `schedule.destdb` keeps a bounded number.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from twisted.logger import Logger

from mailismus.deliver.schedule.destdb import DestDb
from mailismus.deliver.schedule.endpoint import Endpoint
from mailismus.deliver.why.hold import HOLDS, Hold, Reason
from mailismus.deliver.why.holds import find_holds
from mailismus.deliver.why.limits import death_of
from mailismus.deliver.why.sentences import Times
from mailismus.deliver.why.survey import View
from mailismus.observe.text import plain

LOOK_S = 0.5
AFTER_S = 1.0
BURST = 20
REFILL_S = 3.0
MAX_OPEN = 1000

_Key = tuple[Hold, str]


@attrs.define(eq=False)
class _Seen:
    """One hold. Times: monotonic seconds."""

    reason: Reason
    since: float
    seen_at: float
    has_begun: bool = False
    is_logged: bool = False


class HoldWatch:
    """Watches what a delivery task shows of itself. `begun`: holds that have begun, by kind."""

    _log = Logger()

    def __init__(self, hosts: DestDb) -> None:
        self._hosts = hosts
        self._seen: dict[_Key, _Seen] = {}
        self._dead: dict[Endpoint, _Seen] = {}
        self._deaths_seen = -1
        self._records_left = float(BURST)
        self._refilled_at = 0.0
        self._left_out = 0
        self.begun = dict.fromkeys(HOLDS, 0)

    @property
    def is_busy(self) -> bool:
        """Whether a hold is seen that may end without mail."""
        return bool(self._seen) or self._deaths_seen != self._hosts.urgent_changes

    def present(self) -> dict[Hold, int]:
        """Holds that have begun and not ended, by kind."""
        found = dict.fromkeys(HOLDS, 0)
        for seen in self._seen.values():
            found[seen.reason.hold] += seen.has_begun
        found[Hold.DEAD] = len(self._dead)
        return found

    def look(self, view: View, times: Times) -> None:
        """Look at what holds mail back now."""
        now = times.monotonic
        self._look_at_deaths(times)
        for reason in find_holds(view, times):
            self._see(reason, now)
        for key in [key for key, seen in self._seen.items() if now - seen.seen_at >= AFTER_S]:
            seen = self._seen.pop(key)
            if seen.has_begun:
                self._end(seen, seen.seen_at)

    def _see(self, reason: Reason, now: float) -> None:
        key = reason.hold, reason.subject
        seen = self._seen.get(key)
        if seen is None:
            if len(self._seen) < MAX_OPEN:
                self._seen[key] = _Seen(reason, now, now)
        else:
            seen.seen_at = now
            if not seen.has_begun and now - seen.since >= AFTER_S:
                seen.reason = reason
                self._begin(seen, now)

    def _look_at_deaths(self, times: Times) -> None:
        changes = self._hosts.urgent_changes
        if changes == self._deaths_seen:
            return
        self._deaths_seen = changes
        dead = dict.fromkeys(self._hosts.dead_hosts())
        now = times.monotonic
        for host in self._gone(dead):
            self._end(self._dead.pop(host), now)
        for host in dead:
            if host not in self._dead:
                seen = self._dead[host] = _Seen(death_of(_name_of(host), host, times), host.died_at, now)
                self._begin(seen, now)

    def _gone(self, dead: dict[Endpoint, None]) -> Iterable[Endpoint]:
        return [host for host in self._dead if host not in dead]

    # ------------------------------------------------------------------ records

    def _begin(self, seen: _Seen, now: float) -> None:
        seen.has_begun = True
        self.begun[seen.reason.hold] += 1
        seen.is_logged = self._may_log(now)
        if seen.is_logged:
            self._log.info("Held back ({hold}), {subject}: {sentence}{others}", **self._names(seen.reason))

    def _end(self, seen: _Seen, now: float) -> None:
        if seen.is_logged:
            names = self._names(seen.reason)
            took_s = max(0.0, now - seen.since)
            self._log.info("No longer held back ({hold}), {subject}: after {took_s:.0f} s{others}", **names, took_s=took_s)

    def _names(self, reason: Reason) -> dict[str, str]:
        others = f" (and {self._left_out} records of other holds were left out)" if self._left_out else ""
        self._left_out = 0
        subject, sentence = (plain(text.encode("utf-8")).decode("ascii") for text in (reason.subject, reason.sentence))
        return {"hold": reason.hold.value, "subject": subject, "sentence": sentence, "others": others}

    def _may_log(self, now: float) -> bool:
        """Whether another record may be written now; if not, it counts as left out."""
        self._records_left = min(float(BURST), self._records_left + max(0.0, now - self._refilled_at) / REFILL_S)
        self._refilled_at = max(now, self._refilled_at)
        if self._records_left < 1.0:
            self._left_out += 1
            return False
        self._records_left -= 1.0
        return True


def _name_of(host: Endpoint) -> str:
    """Address and port; the path of a Unix socket, which has no port."""
    if not host.port:
        return host.address
    return f"[{host.address}]:{host.port}" if ":" in host.address else f"{host.address}:{host.port}"
