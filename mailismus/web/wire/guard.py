"""Who may ask (pure): by address, by the name asked for, by method, by the site behind the request, by password.

*Rules*
- Without a password only clients of this host are answered, whatever let others connect.
- `Host` must name this server: an address, `localhost`, or a name of the configuration. A site whose name leads to this
  address for a moment (DNS rebinding) has its own name there.
- A browser tells from where it was sent (`Sec-Fetch-*`). Other sites may link to a page; their scripts, pictures and frames
  get nothing, not even the time that an answer takes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from ipaddress import ip_address

import attrs

from mailismus.mail.networks import unmapped
from mailismus.web.wire.password import Password

METHODS = (b"GET", b"HEAD")


@attrs.frozen
class RequestFacts:
    """What is known of a request before its page is looked for. `hosts`: the fields `Host`."""

    method: bytes
    hosts: Sequence[bytes]
    peer: str
    authorization: bytes = b""
    fetch_site: bytes = b""
    fetch_mode: bytes = b""


class Ruling(enum.Enum):
    """What becomes of a request: the status, and what is said."""

    ANSWERED = (200, "")
    STRANGER = (403, "Only this host is answered: write a <passwordfile> for others.")
    OTHER_NAME = (
        421,
        "This server has another name: ask by its address or by localhost, or write the name into <names> of <web>.",
    )
    OTHER_SITE = (403, "Another site asked for this.")
    METHOD = (405, "This page is read only: GET and HEAD are answered.")
    NO_PASSWORD = (401, "This page needs a name and a password.")
    WRONG_PASSWORD = (401, "Name or password is wrong.")

    @property
    def status(self) -> int:
        """The status of HTTP."""
        return self.value[0]

    @property
    def text(self) -> str:
        """What is said."""
        return self.value[1]


class WebGuard:
    """Judges requests. `names`: by which this server may be asked, beside addresses and localhost; `is_loopback`: it listens
    at a loopback address."""

    def __init__(self, names: Iterable[str], password: Password | None, *, is_loopback: bool) -> None:
        self._names = frozenset({"localhost", *(name.lower() for name in names)})
        self._password = password
        self._is_loopback = is_loopback

    def judge(self, asked: RequestFacts) -> Ruling:
        """What becomes of a request."""
        if self._password is None and not _is_loopback(asked.peer):
            return Ruling.STRANGER
        if len(asked.hosts) != 1 or not self._is_ours(asked.hosts[0]):
            return Ruling.OTHER_NAME
        if asked.method not in METHODS:
            return Ruling.METHOD
        if asked.fetch_site not in (b"", b"same-origin", b"none") and asked.fetch_mode != b"navigate":
            return Ruling.OTHER_SITE
        if self._password is None:
            return Ruling.ANSWERED
        if not asked.authorization:
            return Ruling.NO_PASSWORD
        return Ruling.ANSWERED if self._password.is_in(asked.authorization) else Ruling.WRONG_PASSWORD

    def _is_ours(self, field: bytes) -> bool:
        name = name_of_host(field)
        try:
            address = ip_address(name)
        except ValueError:
            return name in self._names
        return unmapped(address).is_loopback or not self._is_loopback


def name_of_host(field: bytes) -> str:
    """The name or address in a field `Host`, in lower case, without port and brackets; empty: there is none."""
    text = field.decode("ascii", "replace").strip().lower()
    if text.startswith("["):
        name, closing, port = text[1:].partition("]")
        return name if closing and (not port or (port[0] == ":" and _is_port(port[1:]))) else ""
    name, colon, port = text.partition(":")
    return name.removesuffix(".") if not colon or _is_port(port) else ""


def _is_port(text: str) -> bool:
    return text == "" or (text.isascii() and text.isdigit() and len(text) <= 5)


def _is_loopback(peer: str) -> bool:
    try:
        return unmapped(ip_address(peer)).is_loopback
    except ValueError:
        return False
