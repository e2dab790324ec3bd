"""Mutants: each step of the schedule left out or turned is noticed by a test of its rules."""

from __future__ import annotations

import pytest

from mailismus.deliver.schedule import choice, destdb, destinations, endpoint, host, limits, line, parked, pool, schedule
from tests.deliver.schedule import test_destdb, test_profiles, test_schedule, test_verification
from tests.deliver.schedule.mutants import Mutant, apply, is_caught, rules_of

MUTANTS = (
    # the order of the choice
    Mutant(choice, "return max(with_room, key=_age)", "return min(with_room, key=_age)"),
    Mutant(choice, "return max(with_room, key=_age)", "return with_room[0]"),
    Mutant(choice, "    if with_room:", "    if False:"),
    Mutant(choice, "if not pool.allows(job.concurrency):", "if False:"),
    Mutant(choice, "if not pool.allows(job.concurrency):", "if not pool.allows(None):"),
    Mutant(choice, "return max(idle, key=_idle_since)", "return min(idle, key=_idle_since)"),
    Mutant(choice, "return max(idle, key=_idle_since)", "return max(idle, key=_age)"),
    Mutant(choice, "next(reversed(host.idle))", "next(iter(host.idle))"),
    Mutant(choice, "    if idle:", "    if False:"),
    Mutant(choice, "    if idle:", "    if idle and pool.has_worker and not pool.is_full:"),
    Mutant(
        choice,
        "return _choose_host(hosts, limits, now, pick) or _free_ride(hosts) or _LIMIT",
        "return _choose_host(hosts, limits, now, pick) or _LIMIT",
    ),
    Mutant(choice, "    if unused:\n        return pick(unused)\n", ""),
    Mutant(choice, "return pick(unused)", "return unused[0]"),
    Mutant(choice, "    if closed:\n", "    if False:\n"),
    Mutant(choice, "return min(closed,", "return max(closed,"),
    Mutant(choice, "key=lambda host: host.made_at", "key=lambda host: host.closed_at"),
    Mutant(choice, "if not host.connections and not host.failures]", "if not host.connections]"),
    Mutant(choice, "    if due:\n        return pick(due)\n", ""),
    Mutant(choice, "return pick(due)", "return due[0]"),
    Mutant(choice, "fewest = min(", "fewest = max("),
    Mutant(
        choice,
        "return pick([host for host in free if host.connections == fewest])",
        "return next(host for host in free if host.connections == fewest)",
    ),
    Mutant(choice, "return pick([host for host in free if host.connections == fewest])", "return pick(free)"),
    Mutant(choice, "    if not limits.window.allows(limits.mx_set.connections, now):\n        return None\n", ""),
    Mutant(choice, "if host.may_have_more(most, now)]", "]"),
    Mutant(choice, "limits.server_limit or NO_LIMIT", "limits.server_limit or 20"),
    Mutant(choice, "return max(fewer, key=_age, default=newest)", "return newest"),
    Mutant(choice, "return max(fewer, key=_age, default=newest)", "return min(fewer, key=_age, default=newest)"),
    Mutant(choice, "host.newest_below(newest.jobs)", "host.newest_below(newest.jobs + 1)"),
    Mutant(choice, "is not None), key=_age, default=None)", "is not None), key=lambda one: -one.number, default=None)"),
    Mutant(choice, "if not host.is_dead(now) and host.trial is None]", "if host.trial is None]"),
    Mutant(choice, "if not host.is_dead(now) and host.trial is None]", "if not host.is_dead(now)]"),
    Mutant(choice, "        if working:\n            return", "        if len(working) == len(level):\n            return"),
    Mutant(choice, "return _TRIAL if is_trial else _NO_HOST", "return _NO_HOST"),
    Mutant(choice, "is_trial = is_trial or any(", "is_trial = any("),
    Mutant(choice, "if job.put_backs >= FRESH_AFTER:", "if job.put_backs > FRESH_AFTER:"),
    Mutant(choice, "if not found.jobs]", "]"),
    Mutant(choice, "return max(fresh, key=_age)", "return min(fresh, key=_age)"),
    # hosts
    Mutant(host, "return now < self.endpoint.dead_until or", "return now <= self.endpoint.dead_until or"),
    Mutant(
        host,
        "(now < self.missed_until and not self.standing)",
        "(now <= self.missed_until and not self.standing)",
        test_profiles,
    ),
    Mutant(host, "(now < self.missed_until and not self.standing)", "now < self.missed_until", test_profiles),
    Mutant(host, "return now >= self.missed_until and self", "return self", test_profiles),
    Mutant(host, "return self._trial or self.endpoint.trial", "return self._trial", test_profiles),
    Mutant(host, "            if endpoint.trial is self._trial:\n", "            if True:\n", test_profiles),
    Mutant(host, "        elif endpoint.failures:\n", "        else:\n", test_profiles),
    Mutant(host, "return self.endpoint.failures or self.misses", "return self.endpoint.failures", test_profiles),
    Mutant(host, "(self.misses > 0 and not self.standing)", "False", test_profiles),
    Mutant(host, "self.missed_at >= self.endpoint.died_at", "True", test_profiles),
    Mutant(endpoint, "return count < most and", "return count <= most and"),
    Mutant(endpoint, "(window is None or window.allows(count, now))", "True"),
    Mutant(host, "if count < jobs), default=0)", "if count <= jobs), default=0)"),
    Mutant(
        endpoint,
        "size=standing)\n        self.window.note_refused",
        ")\n        self.window.note_refused",
        test_destdb,
    ),
    Mutant(endpoint, "size=standing)\n        self.window.note_cut", ")\n        self.window.note_cut", test_destdb),
    Mutant(host, "queue.insert(2 * sum(", "queue.insert(sum(", test_destdb),
    Mutant(endpoint, "self.connections > window.size", "self.connections >= window.size", test_destdb),
    Mutant(host, "if most > self._limits.backlog else None", "if most >= self._limits.backlog else None", test_schedule),
    # the pool
    Mutant(pool, "return count < self._limits.always(share) or", "return count <= self._limits.always(share) or"),
    Mutant(pool, "or count < share.scale * self.free", "or count <= share.scale * self.free"),
    Mutant(pool, "or count < share.scale * self.free", ""),
    Mutant(pool, "share.scale * self.free", "self.free"),
    Mutant(pool, "count >= self._limits.always(share) and", ""),
    Mutant(pool, "and count > share.scale * (self.free + self.leaving + 1)", ""),
    Mutant(pool, "count > share.scale * (self", "count >= share.scale * (self"),
    Mutant(pool, "(self.free + self.leaving + 1)", "(self.free + self.leaving)"),
    Mutant(pool, "(self.free + self.leaving + 1)", "(self.free + 1)"),
    Mutant(pool, " - self.open) + len(self.idle)", " - self.open)"),
    Mutant(pool, "self.open < self._limits.max_connections or bool(self.idle)", "self.open < self._limits.max_connections"),
    Mutant(pool, "self.open >= self._limits.max_connections", "self.open > self._limits.max_connections"),
    Mutant(pool, "- self.open + self.leaving)", "- self.open)", test_schedule),
    Mutant(
        pool,
        "concurrency.share or self._limits.share, len(concurrency.workers)\n        return count < ",
        "self._limits.share, len(concurrency.workers)\n        return count < ",
        test_verification,
    ),
    Mutant(
        pool,
        "concurrency.share or self._limits.share, len(concurrency.workers)\n        return count >= ",
        "self._limits.share, len(concurrency.workers)\n        return count >= ",
        test_verification,
    ),
    Mutant(limits, "max(1, self.max_connections // 2)", "self.max_connections", test_verification),
    # the line
    Mutant(line, "elif sender.deficit < ", "elif False and sender.deficit < "),
    Mutant(line, "sender.deficit -= ", "sender.deficit -= 1 + 0 * "),
    Mutant(line, "                sender.deficit = 0\n", "                sender.deficit += QUANTUM\n"),
    Mutant(line, "passed_over += 1", "return None"),
    Mutant(line, "sender.messages.move_to_end(spool_id)", "pass"),
    Mutant(line, "if may_go(jobs[0]):", "if True:"),
    Mutant(line, "jobs.rotate()", "pass"),
    Mutant(line, "sender.messages.move_to_end(message.spool_id, last=False)", "pass"),
    # the database of destinations
    Mutant(destdb, "2.0 ** min(failures, 64)", "1.0 ** min(failures, 64)"),
    Mutant(destdb, "min(deaths.max_s, deaths.first_s", "max(deaths.max_s, deaths.first_s"),
    Mutant(destdb, " or kind is HostFailure.NO_SESSION else", " else"),
    Mutant(destdb, "0 if now - host.dead_until > deaths.forget_s or", "0 if"),
    Mutant(destdb, "        if host.is_dead(now):  #", "        if False:  #"),
    Mutant(destdb, "others = host.standing - connection.is_standing", "others = host.standing"),
    Mutant(destdb, "        if others:\n", "        if False:\n"),
    Mutant(destdb, "            elif was_broken:\n", "            elif False:\n"),
    Mutant(destdb, "(1.0 - JITTER * self._chance())", "(1.0 + JITTER * self._chance())"),
    Mutant(destdb, " * (1.0 - JITTER * self._chance())", ""),
    Mutant(
        destdb,
        "            self._forget_dead(endpoint)\n            self._note_change()\n            if not",
        "            if not",
    ),
    Mutant(destdb, "        self._revive(host.endpoint, mx_set, now)\n", ""),
    Mutant(destdb, "        self._revive(host.endpoint, connection.mx_set, now)\n", "", test_profiles),
    Mutant(destdb, "        if host.misses:\n            self._forget_miss(host)\n", "", test_profiles),
    Mutant(destdb, "        for host in found:\n            self._forget_miss(host)\n", "", test_profiles),
    Mutant(destdb, "if missed.missed_until <= before:", "if missed.missed_until < before:", test_profiles),
    Mutant(destdb, "if len(self._missed) > self._limit:", "if False:", test_profiles),
    Mutant(
        destdb,
        "            if profile in self._refused:\n                self._miss(",
        "            if False:\n                self._miss(",
        test_profiles,
    ),
    Mutant(destdb, "        if self._refused and host.profile in self._refused:", "        if False:", test_profiles),
    Mutant(
        destdb,
        "            if profile in self._refused:\n                self._forget",
        "            if False:\n                self._forget",
        test_profiles,
    ),
    Mutant(
        destdb, "        for profile in list(self._refused):\n            self._forget_refused(profile)\n", "", test_profiles
    ),
    Mutant(destdb, "for host in self.hosts() if host.profile is profile]", "for host in self.hosts()]", test_profiles),
    Mutant(destdb, "if self._refused[profile][1] <= now:", "if self._refused[profile][1] < now:", test_profiles),
    Mutant(destdb, "if len(self._refused) > self._limit:", "if False:", test_profiles),
    Mutant(destdb, "for host in self._missed if host.profile is profile]", "for host in ()]", test_profiles),
    Mutant(destdb, "if host.needs_trial:", "if False:"),
    Mutant(destdb, "if not mx_set.standing:", "if True:"),
    Mutant(destdb, "if not mx_set.standing:", "if False:"),
    Mutant(destdb, "endpoint.remember(connection.made_at, now)", "endpoint.remember(now, now)"),
    Mutant(destdb, "if not endpoint.connections and connection.is_standing:", "if connection.is_standing:"),
    Mutant(destdb, "if not endpoint.connections and connection.is_standing:", "if not host.connections:"),
    Mutant(destdb, "if host.closed_at > before:", "if host.closed_at >= before:"),
    Mutant(destdb, "if host.dead_until <= before:", "if host.dead_until < before:"),
    Mutant(destdb, "if len(self._dead) > self._limit:", "if False:"),
    Mutant(destdb, "if len(self._closed) > self._limit:", "if False:"),
    # the schedule
    Mutant(schedule, "if own is None or not self.pool.exceeds(own):", "if own is None:"),
    Mutant(schedule, "count = len(own.workers) - 1", "count = len(own.workers)"),
    Mutant(schedule, "return self.line.has(lambda", "return True or self.line.has(lambda"),
    Mutant(schedule, "job.concurrency is None or len(job", "job.concurrency is not None and len(job"),
    Mutant(schedule, "carrier = next(iter(pool.idle)).carrier", "carrier = next(reversed(pool.idle)).carrier"),
    Mutant(schedule, " and pool.soon_free < len(self.line)", ""),
    Mutant(
        schedule,
        "if self.pool.is_full or now < self._paused_until:\n            self._wait",
        "if False:\n            self._wait",
    ),
    Mutant(schedule, "job = line.take(self._may_go)", "job = line.take(_any)"),
    Mutant(schedule, "        self._spread(now)\n", ""),
    Mutant(schedule, "        self._serve_line(now)\n", ""),
    Mutant(schedule, "        for other in host.being_made():\n", "        for other in ():\n"),
    Mutant(schedule, "in self.destdb.hosts_at(host.endpoint):", "in (host,):", test_profiles),
    Mutant(schedule, "            self._give_up_made(connection.host, label)\n", "            pass\n", test_profiles),
    Mutant(schedule, "        if host.queued and not connection.jobs:\n", "        if False:\n"),
    Mutant(schedule, "host.most_crowded() or host.newest_below(self.limits.backlog + 1)", "host.newest_below(99)"),
    Mutant(schedule, "host.most_crowded() or host.newest_below(self.limits.backlog + 1)", "host.most_crowded()"),
    Mutant(schedule, "if label == HOST_NONE else None", "if True else None"),
    Mutant(schedule, "if not is_better and limits.mx_set.note_silence(now, PATIENCE_S):", "if False:"),
    Mutant(schedule, "is_slow = destination.slow_s(now) > SLOW_AFTER_S", "is_slow = False"),
    Mutant(schedule, "            if room >= reserve:\n                break\n", ""),
    Mutant(schedule, "if now - job.queued_at <= SLOW_AFTER_S:", "if now - job.queued_at < SLOW_AFTER_S:"),
    Mutant(schedule, "if now - job.queued_at <= SLOW_AFTER_S:", "if False:"),
    Mutant(schedule, "            elif choice is Wait.LIMIT:\n", "            elif False:\n", test_profiles),
    Mutant(
        schedule, "            if any(other.has_leaving for other in others):\n                return\n", "", test_profiles
    ),
    # destinations
    Mutant(destinations, "if destination.located_until > now and len", "if len"),
    Mutant(destinations, "if not destination.entries and not destination.is_locating:", "if not destination.is_locating:"),
    Mutant(
        destinations,
        "        if not destination.entries:\n            self._unused",
        "        if True:\n            self._unused",
    ),
    Mutant(parked, "self._hosts_of[destination] = self._hosts_of.pop(destination)", "pass"),
    Mutant(parked, "            if not waiting:\n", "            if False:\n"),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_mutant_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        apply(mutant, patch)
        assert is_caught(mutant)


@pytest.mark.parametrize(
    "module", [choice, destdb, destinations, host, line, parked, pool, schedule], ids=lambda module: module.__name__
)
def test_the_source_as_it_is_passes(module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a mutant fails by its change, and not by being one."""
    some = next(mutant for mutant in MUTANTS if mutant.module is module)
    with monkeypatch.context() as patch:
        apply(some._replace(new=some.old), patch)
        assert list(rules_of(some))
        assert not is_caught(some)
