"""Refused secrets: watches their files, so that a new secret ends the wait of its mail.

*Rules*
- Only files of profiles that wait are looked at, once in `LOOK_S`, in another thread; nothing is read of them.
- A profile is told once, and watched anew if its next try fails too; but not again within `PAUSE_S`, so that a program that
  writes a file again and again does not lock an account. A file that nobody renews in `KEPT_S` is watched no more.

*Not here*: the wait itself (`schedule.destdb`).
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import attrs
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure

from mailismus.deliver.authentication.secrets import Secrets
from mailismus.deliver.security.profile import Profile
from mailismus.secret_file import Version

LOOK_S = 5.0
PAUSE_S = 60.0
KEPT_S = 3600.0


@attrs.define(eq=False)
class _Watched:
    """One refusal. `used`: the version of the file that was of no use, once it `is_known`; None: there was none. `until`:
    seconds of the reactor's clock."""

    path: str
    used: Version | None
    is_known: bool
    until: float
    is_looking: bool = False


class SecretWatch:
    """The files of refused secrets. `on_renewed` is called for a profile whose file is another one by now."""

    def __init__(self, secrets: Secrets, clock: IReactorTime, on_renewed: Callable[[Profile], None]) -> None:
        self._secrets, self._clock, self._on_renewed = secrets, clock, on_renewed
        self._watched: WeakKeyDictionary[Profile, _Watched] = WeakKeyDictionary()
        self._told_at: WeakKeyDictionary[Profile, float] = WeakKeyDictionary()
        self._timer: IDelayedCall | None = None

    def watch(self, profile: Profile, path: str, used: Version | None) -> None:
        """Watch the file of a profile. `used`: the version that was refused; None: the present one can't be used."""
        watched = self._watched[profile] = _Watched(path, used, used is not None, self._clock.seconds() + KEPT_S)
        if used is None:
            self._look(profile, watched)
        self._start()

    def forget(self, profile: Profile) -> None:
        """Watch the file of this profile no more: its secret was accepted."""
        self._watched.pop(profile, None)
        self._told_at.pop(profile, None)

    def stop(self) -> None:
        """Look at nothing more."""
        self._watched.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        if self._timer is None and self._watched:
            self._timer = self._clock.callLater(LOOK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = self._clock.seconds()
        for profile, watched in list(self._watched.items()):
            if watched.until <= now:
                del self._watched[profile]
            elif not watched.is_looking:
                self._look(profile, watched)
        self._start()

    def _look(self, profile: Profile, watched: _Watched) -> None:
        watched.is_looking = True
        self._secrets.version(watched.path).addBoth(self._on_version, profile, watched)

    def _on_version(self, version: Version | Failure | None, profile: Profile, watched: _Watched) -> None:
        watched.is_looking = False
        if self._watched.get(profile) is not watched or isinstance(version, Failure):
            return
        if not watched.is_known:
            watched.used, watched.is_known = version, True
        elif version is not None and version != watched.used and self._takes_turn(profile):
            del self._watched[profile]
            self._on_renewed(profile)

    def _takes_turn(self, profile: Profile) -> bool:
        """Take the turn of a profile that is to be told. Return whether it has one now."""
        now, told_at = self._clock.seconds(), self._told_at.get(profile)
        if told_at is not None and now < told_at + PAUSE_S:
            return False
        self._told_at[profile] = now
        return True
