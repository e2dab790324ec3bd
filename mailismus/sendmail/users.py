"""Users of this system who may hand over messages.

*Rules*: `<deny>` counts before `<allow>`. Root and the server's own user may, unless they are denied by name or number.
Names become numbers when the configuration is read; one that is not known then matches nobody until it is read again.
"""

from __future__ import annotations

import pwd
from collections.abc import Iterable, Set

import attrs

from mailismus.config.values.settings import SendmailSettings

_ALL = "*"


@attrs.frozen
class Users:
    """Who may. `are_all`: everybody who is not denied; `are_none`: everybody is denied. `unknown`: names of no user."""

    allowed: Set[int]
    denied: Set[int]
    are_all: bool
    are_none: bool
    own: int
    unknown: tuple[str, ...]

    def may(self, uid: int) -> bool:
        """Whether messages of the user with this number are taken."""
        if self.are_none or uid in self.denied:
            return False
        return self.are_all or uid in (0, self.own) or uid in self.allowed


class ProgramTerms:
    """The terms in force for messages of programs; a reload changes them. `maxmsgsize`: bytes of a message, 0: no limit."""

    def __init__(self, users: Users, maxmsgsize: int) -> None:
        self.users, self.maxmsgsize = users, maxmsgsize

    def adopt(self, users: Users, maxmsgsize: int) -> None:
        """Use others from now on."""
        self.users, self.maxmsgsize = users, maxmsgsize


def find_users(settings: SendmailSettings, own: int) -> Users:
    """Look the names up. `own`: the number of the server's user. Blocks as the system's list of users does."""
    unknown: list[str] = []
    allowed, denied = (_numbers(names, unknown) for names in (settings.allow, settings.deny))
    return Users(allowed, denied, _ALL in settings.allow, _ALL in settings.deny, own, tuple(unknown))


def _numbers(names: Iterable[str], unknown: list[str]) -> frozenset[int]:
    found = set()
    for name in names:
        if name == _ALL:
            continue
        try:
            found.add(int(name) if name.isdecimal() else pwd.getpwnam(name).pw_uid)
        except KeyError:
            unknown.append(name)
    return frozenset(found)
