"""Profiles in the schedule: no connection is shared, limits are, and what one profile misses is no fault for others."""

from __future__ import annotations

import gc
import math

from mailismus.config.values.auth import AuthSettings, SecretSource
from mailismus.config.values.tls import TlsLevel
from mailismus.deliver.limits.sets import MxSet
from mailismus.deliver.log_line import NO_FIELDS, LogFields
from mailismus.deliver.routes.route import NextHop
from mailismus.deliver.schedule.destdb import Deaths, DestDb, HostFailure
from mailismus.deliver.schedule.host import Connection, Host
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.deliver.security.profile import PLAIN, Profile, Profiles, Requirement
from tests.deliver.schedule.desk import LABEL, MISSED, Desk
from tests.deliver.schedule.jobs import HOP
from tests.deliver.schedule.world import REFUSED, window

PROFILES = Profiles()
ENCRYPT = PROFILES.of(Requirement(TlsLevel.ENCRYPT, "<tls> in line 1"))
VERIFY = PROFILES.of(Requirement(TlsLevel.VERIFY, "<tls> in line 2"))
PLAIN_HOP, ENCRYPT_HOP = HOP, HOP._replace(profile=ENCRYPT)
ADDRESS = "192.0.2.1"


def desk(**options: object) -> Desk:
    """Two next hops with the same hosts, one of which demands TLS."""
    made = Desk(**options)  # type: ignore[arg-type]
    made.hosts_of[ENCRYPT_HOP] = made.hosts_of[PLAIN_HOP]
    return made


CREDENTIALS = AuthSettings(("PLAIN",), "joe", SecretSource("relay.secret", b"1"), None)


def destdb(limit: int = 10_000) -> DestDb:
    return DestDb(ScheduleLimits(), Deaths(300.0, 7200.0, 7200.0), limit)


def connect(hosts: DestDb, profile: Profile, now: float = 0.0, address: str = ADDRESS) -> Connection:
    return hosts.connect(hosts.find(address, 25, profile), MxSet((("mx",), 25), window(9), None), now)


def test_equal_profiles_are_one_object_and_others_are_not() -> None:
    assert PROFILES.of(Requirement(TlsLevel.ENCRYPT, "<tls> in line 1")) is ENCRYPT
    assert PROFILES.of(Requirement(TlsLevel.ENCRYPT, "<tls> in line 9")) is not ENCRYPT
    assert PROFILES.of(ENCRYPT.requirement, CREDENTIALS) is not ENCRYPT
    gc.collect()
    assert len(PROFILES) == 2  # what nobody uses is forgotten


def test_next_hops_of_different_profiles_share_no_connection() -> None:
    one = desk()
    plain, private = one.add(1, next_hop=PLAIN_HOP), one.add(2, next_hop=ENCRYPT_HOP)
    first, second = one.opened
    assert (first.host.profile, second.host.profile) == (PLAIN, ENCRYPT)
    one.stand(first)
    one.stand(second)
    assert (one.begun(first), one.begun(second)) == ([plain], [private])
    one.deliver(first)
    one.deliver(second)
    assert first.is_idle
    assert second.is_idle
    again = one.add(3, next_hop=PLAIN_HOP)  # the other became idle last, and is not taken
    assert one.begun(first) == [again]
    assert len(one.opened) == 2


def test_profiles_share_the_limit_of_connections_to_a_host() -> None:
    one = desk(server_limit=2, limits=ScheduleLimits(backlog=1))
    for number in range(4):
        one.add(number + 1, next_hop=(PLAIN_HOP, ENCRYPT_HOP)[number % 2])
    assert [connection.host.profile for connection in one.opened] == [PLAIN, ENCRYPT]
    assert one.host().endpoint is one.host(profile=ENCRYPT).endpoint
    assert one.host().endpoint.connections == 2


def test_an_idle_connection_makes_room_for_another_profile() -> None:
    one = desk(server_limit=1)
    one.add(1, next_hop=PLAIN_HOP)
    (plain,) = one.opened
    one.stand(plain)
    one.deliver(plain)
    assert plain.is_idle
    job = one.add(2, next_hop=ENCRYPT_HOP)
    assert plain.is_leaving
    assert len(one.opened) == 1
    other = one.add(3, next_hop=ENCRYPT_HOP)
    one.close(plain)
    one.serve()
    (_, private) = one.opened
    one.stand(private)
    assert one.begun(private) == [job]
    assert list(private.queue) == [other]


def test_no_more_idle_connections_end_than_are_needed() -> None:
    one = desk(server_limit=2, limits=ScheduleLimits(backlog=1))
    for number in range(2):
        one.add(number + 1, next_hop=PLAIN_HOP)
    for connection in one.opened:
        one.stand(connection)
    for connection in one.opened:
        one.deliver(connection)
    one.add(3, next_hop=ENCRYPT_HOP)
    one.add(4, next_hop=ENCRYPT_HOP)
    assert [connection.is_leaving for connection in one.opened] == [True, False]


def test_profiles_share_the_window_of_a_host() -> None:
    hosts = destdb()
    plain = hosts.find(ADDRESS, 25)
    plain.endpoint.refuse(0.0, 1, REFUSED)
    connection = connect(hosts, ENCRYPT)
    assert not hosts.find(ADDRESS, 25, VERIFY).may_have_more(20, 1000.0)
    hosts.leave(connection)
    hosts.close(connection, 1.0)
    assert hosts.find(ADDRESS, 25, VERIFY).may_have_more(20, 1000.0)


def test_a_host_that_dies_is_dead_for_all_profiles_and_their_jobs_leave() -> None:
    one = desk()
    one.add(1, next_hop=PLAIN_HOP)
    one.add(2, next_hop=ENCRYPT_HOP)
    plain, private = one.opened
    one.fail(private)
    one.serve()
    assert one.host().is_dead(one.now)
    assert not plain.queue
    assert [deferred.reply for deferred in one.deferred] == [REFUSED, REFUSED]


def test_a_trial_of_one_profile_is_waited_for_by_others() -> None:
    hosts = destdb()
    dead = connect(hosts, PLAIN)
    hosts.leave(dead)
    hosts.note_failure(dead, REFUSED, HostFailure.NO_CONNECTION, 0.0)
    hosts.close(dead, 0.0)
    plain, private = hosts.find(ADDRESS, 25), hosts.find(ADDRESS, 25, ENCRYPT)
    trial = connect(hosts, ENCRYPT, 300.0)
    assert plain.trial is trial
    assert private.trial is trial
    assert plain.with_jobs() == []
    assert private.with_jobs() == [trial]
    hosts.stand(trial, 301.0)
    assert [host.trial for host in (plain, private)] == [None, None]
    assert plain.failures == 0


def test_what_is_missed_is_held_against_no_other_profile() -> None:
    one = desk()
    one.add(1, next_hop=PLAIN_HOP)
    one.add(2, next_hop=ENCRYPT_HOP)
    plain, private = one.opened
    one.miss(private)
    one.serve()
    assert [(deferred.job.next_hop, deferred.reply, deferred.label) for deferred in one.deferred] == [
        (ENCRYPT_HOP, MISSED, LABEL)
    ]
    assert (one.host().is_dead(one.now), one.host(profile=ENCRYPT).is_dead(one.now)) == (False, True)
    one.stand(plain)
    one.deliver(plain)
    assert len(one.delivered) == 1


def test_jobs_of_connections_that_are_being_made_do_not_wait_for_the_same() -> None:
    one = desk(limits=ScheduleLimits(backlog=1))
    for number in range(2):
        one.add(number + 1, next_hop=ENCRYPT_HOP)
    assert len(one.opened) == 2
    one.miss(one.opened[0])
    one.serve()
    assert [deferred.reply for deferred in one.deferred] == [MISSED, MISSED]


def test_what_is_missed_at_one_host_is_tried_at_the_next() -> None:
    one = desk(levels=(("192.0.2.1",), ("192.0.2.2",)))
    job = one.add(1, next_hop=ENCRYPT_HOP)
    one.miss(one.opened[0])
    one.serve()
    assert [connection.host.address for connection in one.opened] == ["192.0.2.1", "192.0.2.2"]
    assert not one.deferred
    one.stand(one.opened[1])
    assert one.begun(one.opened[1]) == [job]


def test_what_was_missed_is_tried_again_with_one_connection_when_its_time_is_over() -> None:
    one = desk(limits=ScheduleLimits(backlog=1))
    one.add(1, next_hop=ENCRYPT_HOP)
    one.miss(one.opened[0])
    one.serve()
    host = one.host(profile=ENCRYPT)
    one.now = host.missed_until
    assert not host.is_dead(one.now)
    for number in range(3):
        one.add(number + 2, next_hop=ENCRYPT_HOP)
    assert len(one.opened) == 2
    assert host.trial is one.opened[1]
    assert one.host().trial is None  # others do not wait for it
    one.stand(one.opened[1])
    assert [host.trial, host.reply, host.misses] == [None, None, 0]


def test_while_sessions_stand_a_miss_means_no_more_connections() -> None:
    hosts = destdb()
    host = hosts.find(ADDRESS, 25, ENCRYPT)
    standing = connect(hosts, ENCRYPT)
    hosts.stand(standing, 0.0)
    missed = connect(hosts, ENCRYPT)
    hosts.leave(missed)
    assert not hosts.note_missed(missed, MISSED, 1.0)
    assert not host.is_dead(1.0)
    assert not host.may_have_more(20, 1.0)
    assert host.may_have_more(20, 301.0)
    hosts.leave(standing)
    hosts.close(standing, 2.0)
    assert host.is_dead(2.0)
    assert not host.is_dead(301.0)


def test_a_host_that_missed_has_answered_so_it_is_not_dead_any_more() -> None:
    hosts = destdb()
    dead = connect(hosts, PLAIN)
    hosts.leave(dead)
    hosts.note_failure(dead, REFUSED, HostFailure.NO_CONNECTION, 0.0)
    hosts.close(dead, 0.0)
    trial = connect(hosts, ENCRYPT, 300.0)
    hosts.leave(trial)
    assert hosts.note_missed(trial, MISSED, 301.0)
    plain, private = hosts.find(ADDRESS, 25), hosts.find(ADDRESS, 25, ENCRYPT)
    assert (plain.failures, plain.is_dead(301.0), hosts.remembered) == (0, False, 0)
    assert (private.failures, private.is_dead(301.0)) == (1, True)
    assert plain.trial is None


def test_the_reply_is_that_of_the_last_failure() -> None:
    hosts = destdb()
    missed = connect(hosts, ENCRYPT)
    hosts.leave(missed)
    hosts.note_missed(missed, MISSED, 1.0)
    hosts.close(missed, 1.0)
    host = hosts.find(ADDRESS, 25, ENCRYPT)
    assert (host.reply, host.is_missing, host.died_at) == (MISSED, True, 1.0)
    assert host.dead_until == 301.0
    failed = connect(hosts, PLAIN)
    hosts.leave(failed)
    hosts.note_failure(failed, REFUSED, HostFailure.NO_CONNECTION, 2.0)
    assert (host.reply, host.is_missing, host.died_at) == (REFUSED, False, 2.0)
    assert host.dead_until == 302.0


def test_a_trial_after_a_miss_is_not_one_of_the_endpoint() -> None:
    hosts = destdb()
    missed = connect(hosts, ENCRYPT)
    hosts.leave(missed)
    hosts.note_missed(missed, MISSED, 1.0)
    trial = connect(hosts, ENCRYPT, 301.0)
    plain = hosts.find(ADDRESS, 25)
    assert (plain.trial, hosts.find(ADDRESS, 25, ENCRYPT).trial) == (None, trial)
    failed = connect(hosts, PLAIN, 301.0)
    hosts.leave(failed)
    hosts.note_failure(failed, REFUSED, HostFailure.NO_CONNECTION, 302.0)
    other = connect(hosts, PLAIN, 700.0)
    assert plain.trial is other
    hosts.leave(trial)  # ends its own trial alone
    assert plain.trial is other
    assert hosts.find(ADDRESS, 25, ENCRYPT).trial is other


def test_a_flush_forgets_what_was_missed() -> None:
    hosts = destdb()
    for address in ("192.0.2.1", "192.0.2.2"):
        missed = connect(hosts, ENCRYPT, address=address)
        hosts.leave(missed)
        hosts.note_missed(missed, MISSED, 1.0)
    one, other = (hosts.find(address, 25, ENCRYPT) for address in ("192.0.2.1", "192.0.2.2"))
    hosts.forget_deaths_of([one])
    assert [host.is_dead(2.0) for host in (one, other)] == [False, True]
    hosts.forget_deaths()
    assert not other.is_dead(2.0)


def test_what_was_missed_is_forgotten_with_time_and_in_number() -> None:
    hosts = destdb(limit=2)
    for number in range(3):
        missed = connect(hosts, ENCRYPT, float(number), f"192.0.2.{number}")
        hosts.leave(missed)
        hosts.note_missed(missed, MISSED, float(number))
        hosts.close(missed, float(number))

    def known() -> list[str]:
        gc.collect()
        return sorted(host.address for host in hosts.hosts() if host.misses)

    del missed
    assert known() == ["192.0.2.1", "192.0.2.2"]
    hosts.collect(301.0 + 7199.0)
    assert known() == ["192.0.2.1", "192.0.2.2"]
    hosts.collect(301.0 + 7200.0)
    assert known() == ["192.0.2.2"]


def test_nothing_is_kept_of_a_host_that_nobody_uses() -> None:
    hosts = destdb()
    kept: list[Host] = [hosts.find(ADDRESS, 25, profile) for profile in (PLAIN, ENCRYPT)]
    assert {host.endpoint for host in kept} == {kept[0].endpoint}
    assert sorted(hosts.hosts_at(kept[0].endpoint), key=id) == sorted(kept, key=id)
    kept.clear()
    gc.collect()
    assert hosts.hosts() == []


def test_a_next_hop_with_another_profile_is_another_one() -> None:
    assert PLAIN_HOP != ENCRYPT_HOP
    assert NextHop("one.example", 25) == PLAIN_HOP
    assert hosts_missed_nothing(destdb())


def hosts_missed_nothing(hosts: DestDb) -> bool:
    """Whether a host of which nothing is known has missed nothing."""
    host = hosts.find(ADDRESS, 25, VERIFY)
    return (host.misses, host.missed_at, host.is_missing, host.is_dead(0.0)) == (0, -math.inf, False, False)


# ---------------------------------------------------------------------- credentials

WITH_AUTH = Profiles()
AUTH = WITH_AUTH.of(ENCRYPT.requirement, CREDENTIALS)
OTHER_AUTH = WITH_AUTH.of(ENCRYPT.requirement, AuthSettings(("PLAIN",), "ann", SecretSource("ann.secret", b"1"), None))
NO_LOGIN = MISSED._replace(enhanced=b"4.7.8", text=b"authentication as joe failed: 535 no")


def refused(hosts: DestDb, now: float = 1.0) -> list[Host]:
    """Credentials that were refused by the first of two hosts; the hosts that are dead for them."""
    first = connect(hosts, AUTH)
    hosts.leave(first)
    return hosts.note_refused(first, NO_LOGIN, now)


def test_refused_credentials_are_a_miss_of_every_host_of_their_profile_alone() -> None:
    hosts = destdb()
    others = [hosts.find("192.0.2.2", 25, profile) for profile in (AUTH, OTHER_AUTH, ENCRYPT, PLAIN)]
    assert {host.address for host in refused(hosts)} == {ADDRESS, "192.0.2.2"}
    assert [host.is_dead(2.0) for host in others] == [True, False, False, False]
    later = hosts.find("192.0.2.3", 25, AUTH)
    assert (later.is_dead(2.0), later.dead_until, later.reply) == (True, 301.0, NO_LOGIN)
    assert not hosts.find("192.0.2.3", 25, OTHER_AUTH).is_dead(2.0)


def test_a_session_that_stands_clears_the_refusal_at_all_hosts() -> None:
    hosts = destdb()
    kept = [hosts.find("192.0.2.2", 25, AUTH)]
    refused(hosts)
    trial = connect(hosts, AUTH, 302.0)
    hosts.stand(trial, 302.0)
    assert [host.misses for host in kept] == [0]
    assert not hosts.find("192.0.2.3", 25, AUTH).misses


def test_a_flush_and_time_clear_a_refusal() -> None:
    for forget in (DestDb.forget_deaths, lambda hosts: hosts.forget_deaths_of([hosts.find(ADDRESS, 25, AUTH)])):
        hosts = destdb()
        refused(hosts)
        forget(hosts)
        assert not hosts.find("192.0.2.3", 25, AUTH).is_dead(2.0)
    hosts = destdb()
    refused(hosts)
    hosts.collect(300.0)
    assert hosts.find("192.0.2.3", 25, AUTH).misses
    hosts.collect(301.0)
    assert not hosts.find("192.0.2.4", 25, AUTH).misses


def test_refusals_are_bounded_in_number() -> None:
    hosts = destdb(limit=2)
    profiles = [
        WITH_AUTH.of(ENCRYPT.requirement, AuthSettings(("PLAIN",), name, SecretSource(name, b"1"), None)) for name in "abc"
    ]
    for number, profile in enumerate(profiles):
        one = connect(hosts, profile, 0.0)
        hosts.leave(one)
        hosts.note_refused(one, NO_LOGIN, float(number))
    assert [hosts.find("192.0.2.9", 25, profile).misses for profile in profiles] == [0, 1, 1]


def test_what_the_log_says_of_tls_tells_a_miss_of_tls_from_one_of_credentials() -> None:
    for met_tls, level in ((False, b"!encrypt"), (True, b"encrypt")):
        one = desk()
        one.add(1, next_hop=ENCRYPT_HOP)
        (connection,) = one.opened
        destination = one.schedule.destinations[ENCRYPT_HOP]
        assert destination.fields_of_failure() == NO_FIELDS
        one.schedule.destdb.leave(connection)
        one.schedule.destdb.note_missed(connection, MISSED, one.now, met_tls=met_tls)
        assert destination.fields_of_failure() == LogFields(level, b", tls=" + level)
