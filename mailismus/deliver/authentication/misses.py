"""Sessions that were not authenticated: what they keep waiting, counted, and logged once an hour.

*Rules*: a refused secret that was renewed since is tried again once, until a session is authenticated: a program that writes
the file again and again does not make the host refuse again and again.

*Not here*: the texts (`authentication.failure`), the hosts that are left alone (`schedule`).
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from twisted.logger import Logger

from mailismus.deliver.authentication.failure import AuthFailure, Scope, printable
from mailismus.deliver.counters import DeliveryCounters
from mailismus.deliver.security.profile import Profile
from mailismus.deliver.security.warnings import Warnings
from mailismus.secret_file import Version


class AuthMisses:
    """What follows. `now`: monotonic seconds."""

    _log = Logger()

    def __init__(self, counters: DeliveryCounters) -> None:
        self._counters = counters
        self._warnings = Warnings()
        self._tried_again: WeakKeyDictionary[Profile, Version | None] = WeakKeyDictionary()
        """The version of the secret whose refusal led to another try."""

    def note_success(self, profile: Profile) -> None:
        """Note that a session of this profile was authenticated."""
        self._counters.count_auth_session()
        self._tried_again.pop(profile, None)

    def note(self, profile: Profile, label: bytes, failure: AuthFailure, now: float) -> Scope:
        """Note that a session with a host was not authenticated. Return what it keeps waiting. `label`: the host as logged
        behind `relay=`."""
        scope = failure.scope
        if scope is Scope.NOTHING and self._tried_again.setdefault(profile, failure.used) != failure.used:
            scope = Scope.PROFILE
        if scope is Scope.PROFILE:
            self._tried_again.pop(profile, None)
        self._counters.count_auth_failure(failure.kind.value)
        if scope is not Scope.NOTHING and self._warnings.tell((label, profile.credentials, failure.kind), now):
            reply = bytes(failure.reply).decode("ascii")
            user = "" if profile.credentials is None else printable(profile.credentials.username).decode("ascii")
            self._log.warn("Mail for {host} as {user} waits: {reply}", host=label.decode("ascii"), user=user, reply=reply)
        return scope
