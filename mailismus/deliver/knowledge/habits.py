"""Habits of receivers as delivery sees them: those of next hops (`hop_habits`), and of hosts (pure).

*Rules*: memory is bounded: of next hops (`recent`) and hosts (`MAX_HOSTS`) those in use are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from mailismus.deliver.jobs.job import NOWHERE
from mailismus.deliver.knowledge.hop_habits import DURATIONS, LIMITS, SeenHop, quantiles
from mailismus.deliver.knowledge.in_use import InUse
from mailismus.deliver.knowledge.recent import HopTotals
from mailismus.deliver.routes.route import NextHop
from mailismus.mail.reply import Reply
from mailismus.observe.habits import MAX_HOSTS, MAX_REPLY_BYTES, HopHabits, HostHabits


class _SeenHost:
    """What is seen of one host."""

    __slots__ = ("failure_s", "is_pipelining", "is_used", "limits", "refusal", "setup_s")

    def __init__(self) -> None:
        self.setup_s: deque[float] = deque(maxlen=DURATIONS)
        self.limits: deque[int] = deque(maxlen=LIMITS)
        self.refusal = b""
        self.is_pipelining = True
        self.failure_s = 0.0
        self.is_used = False

    def take_turn(self) -> None:
        """See `in_use.Usable`."""
        self.is_used = False

    def stand(self, setup_s: float, *, is_pipelining: bool) -> None:
        """Note a session that stands."""
        self.setup_s.append(setup_s)
        self.is_pipelining = is_pipelining
        self.is_used = True

    def refuse(self, standing: int, reply: bytes) -> None:
        """Note a session that it refused while others stood."""
        self.limits.append(standing)
        self.refusal = reply
        self.is_used = True

    def fail(self, took_s: float) -> None:
        """Note a connection that failed."""
        self.failure_s = took_s
        self.is_used = True


class HabitBook:
    """What is seen of all. `of_hop`: where the habits of next hops are. Times are monotonic seconds."""

    def __init__(self, of_hop: InUse[NextHop, HopTotals], max_hosts: int = MAX_HOSTS) -> None:
        self._of_hop = of_hop
        self._hosts: InUse[tuple[str, int], _SeenHost] = InUse(_SeenHost, max_hosts)

    def of(self, next_hop: NextHop) -> SeenHop:
        """What is seen of a next hop."""
        return self._of_hop[next_hop].habits

    def note_session(
        self, next_hops: Iterable[NextHop], label: bytes, host: tuple[str, int], setup_s: float, is_pipelining: bool
    ) -> None:
        """Note a session that stands, for jobs of these next hops, with a host that offers PIPELINING or not."""
        self._hosts[host].stand(setup_s, is_pipelining=is_pipelining)
        for next_hop in next_hops:
            self.of(next_hop).note_label(label)

    def note_refused_session(self, host: tuple[str, int], standing: int, reply: Reply) -> None:
        """Note that a host refused a session while so many others stood."""
        self._hosts[host].refuse(standing, bytes(reply)[:MAX_REPLY_BYTES])

    def note_no_session(self, host: tuple[str, int], took_s: float) -> None:
        """Note that a connection to a host became no session."""
        self._hosts[host].fail(took_s)

    # ------------------------------------------------------------------ what is told

    def hops(self, now: float) -> Iterator[HopHabits]:
        """All next hops; the caller may go on in later turns."""
        for next_hop in list(self._of_hop):
            totals = self._of_hop.get(next_hop)
            if totals is not None and next_hop is not NOWHERE:
                yield totals.habits.told(next_hop, now)

    def hosts(self, under_way: Mapping[tuple[str, int], int]) -> Iterator[HostHabits]:
        """All hosts, in the same way. `under_way`: messages under way now, by address and port."""
        for key in list(self._hosts):
            host = self._hosts.get(key)
            if host is not None:
                limits = max(host.limits, default=0), host.refusal
                setup_s, count = quantiles(host.setup_s), under_way.get(key, 0)
                yield HostHabits(*key, setup_s, *limits, host.is_pipelining, host.failure_s, count)
