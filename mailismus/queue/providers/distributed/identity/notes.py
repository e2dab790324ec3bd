"""What a server tells of itself, for people: what it has in its hand, and which services it can't use.

*Rules*: nothing is decided by a note, and one that can't be written is left out. Its times are the database's: servers whose
clocks differ are seen alike.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.queue.providers.distributed.format.tables import SERVER_NOTES, SERVERS
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.regular import Regular
from mailismus.queue.providers.distributed.stores.rows import IRows, Put, Row, Value
from mailismus.queue.servers import KnownServer

TELL_S = 10.0
KEPT_S = 30 * 86_400
"""So long a server is known after its last note."""


class NoteWriting:
    """The notes of one server. `held`: entries in its hand, by area; `circuits`: by the name of a service whether it is
    used, in a word, as in `KnownServer`."""

    def __init__(
        self,
        rows: IRows,
        lease: ServerLease,
        server: str,
        held: Callable[[], Mapping[str, int]],
        circuits: Callable[[], Mapping[str, str]],
        reactor: IReactorTime,
    ) -> None:
        self._rows, self._lease, self._server = rows, lease, server
        self._held, self._circuits = held, circuits
        self._telling = Regular(TELL_S, reactor, "what this server has can't be told")

    def start(self) -> None:
        """Tell, and go on telling."""
        self._telling.start(self._tell)

    def close(self) -> Deferred[None]:
        """Tell that it has ended. Never fails."""
        self._telling.close()
        return self._telling.do(self._tell(is_last=True))

    async def _tell(self, *, is_last: bool = False) -> None:
        now = await self._rows.now()
        left_s = 0.0 if is_last else self._lease.left_s
        note = {"held": {} if is_last else self._held(), "circuits": self._circuits()}
        cells: dict[str, Value] = {"epoch": self._lease.epoch, "told_at": now, "note": json.dumps(note).encode()}
        if left_s is not None:
            cells["lease_until"] = now + left_s
        await self._rows.write([Put(SERVER_NOTES, (self._server,), cells, now, KEPT_S)])


async def known_servers(rows: IRows) -> list[KnownServer]:
    """All servers that have leases, or told of themselves lately. Raises `NotDone`."""
    notes = await rows.all_rows(SERVER_NOTES)
    leases = {row["epoch"]: row["name"] for row in await rows.all_rows(SERVERS) if row["name"]}
    now = await rows.now()
    found = [_noted(row, now, has_lease=leases.pop(row["epoch"], None) == row["name"]) for row in notes]
    for epoch, name in leases.items():
        assert isinstance(epoch, int), "a column of the key"
        found.append(KnownServer(str(name), epoch, True, None, None, {}, {}))
    return found


def _noted(row: Row, now: float, *, has_lease: bool) -> KnownServer:
    epoch, told_at, until = row["epoch"], row["told_at"], row["lease_until"]
    note = _note_of(row["note"])
    return KnownServer(
        str(row["name"]),
        epoch if isinstance(epoch, int) else 0,
        has_lease,
        until - now if isinstance(until, int | float) else None,
        max(0.0, now - told_at) if isinstance(told_at, int | float) else None,
        {area: count for area, count in _object(note, "held").items() if isinstance(count, int)},
        {name: state for name, state in _object(note, "circuits").items() if isinstance(state, str)},
    )


def _note_of(value: Value) -> Mapping[str, object]:
    try:
        note = json.loads(value) if isinstance(value, bytes) else None
    except (ValueError, RecursionError):
        note = None
    return note if isinstance(note, dict) else {}


def _object(note: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = note.get(name)
    return value if isinstance(value, dict) else {}
