"""The snapshot of hosts: what is known of them survives a restart, `kill -9` included, in the state file `hosts`.

    start -> load -> adopt -> ... a host dies -> publish -> hosts.new, renamed -> ... stop -> publish

*Rules*
- Written when something changed, and never else: `AFTER_S` after the last write if a host died, recovered or was forgotten
  by a flush, else `AFTER_OTHERS_S` after it; and at a clean stop. No barrier: a power cut may leave the file missing, empty
  or cut, and the start after it knows less.
- No mail depends on it. It is read before the reactor runs, as the queue is; from then on no turn works on more than `STEP`
  records, and lines are made and written in a thread of its own. A stop waits for that, `STOP_S` at most.
- A file that does not check, can't be read or is of a newer format is told in one line, and never refuses a start. One that
  can't be written is told once, and once more when it can be written again.

*Not here*: records and what is believed of them (`host_records`), the frame of the file (`queue.files.state_file`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailismus.deliver.knowledge.host_records import FORMAT, HostRecord, bounded, format_line, is_future, parse_line
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.errors import Corrupt
from mailismus.queue.files.state_file import HOSTS, read_state, write_state

TICK_S = 2.0
"""Between two looks whether something changed."""
AFTER_S = 6.0
"""Between two writes: with a look and the write itself less than ten seconds from a death to its file."""
AFTER_OTHERS_S = 24.0
"""The same for what is less urgent: less than thirty."""
STEP = 500
"""Records that one turn collects: less than 1 ms."""
STOP_S = 5.0
_DRIFT_S = 1.0
"""The clocks may drift by this much before records are dated anew."""


class HostsCopy(Protocol):
    """The local copy of what is known of hosts, by which all decisions are made (`schedule.destdb`)."""

    @property
    def changes(self) -> int:
        """Rises with each change of the records."""

    @property
    def urgent_changes(self) -> int:
        """Rises when a host died, recovered, or was forgotten."""

    def records(self, offset_s: float) -> Iterator[HostRecord]:
        """All records; the caller may go on in later turns. `offset_s`: UTC minus monotonic seconds."""

    def adopt(self, records: Iterable[HostRecord], now: float, offset_s: float) -> None:
        """Take over what is newer. `now`: monotonic seconds."""


class HostSnapshot:
    """Keeps the records of one copy in a directory: the `HostSharing` of two runs of a server. `directory` None: the queue
    keeps nothing, nor does this. `worker`: one thread of its own."""

    _log = Logger()

    def __init__(
        self,
        hosts: HostsCopy,
        directory: str | None,
        disk: IDisk,
        worker: IWorker,
        clock: IReactorTime,
        monotonic: Callable[[], float],
    ) -> None:
        """`clock`: UTC seconds."""
        self._hosts, self._directory = hosts, directory
        self._disk, self._worker = disk, worker
        self._clock, self._monotonic = clock, monotonic
        self._dated_s = clock.seconds() - monotonic()
        self._timer: IDelayedCall | None = None
        self._saved: tuple[int, int] | None = (0, 0)
        """Urgent and all changes, as they were when the last write began; None: that write failed."""
        self._saved_at = -math.inf
        self._saving: Deferred[None] | None = None
        """Fires when the write that is under way has ended."""
        self._has_trouble = False

    @property
    def _offset_s(self) -> float:
        """UTC minus monotonic seconds: the same for all records, as long as the clock is not set."""
        offset_s = self._clock.seconds() - self._monotonic()
        if abs(offset_s - self._dated_s) > _DRIFT_S:
            self._dated_s = offset_s
        return self._dated_s

    # ------------------------------------------------------------------ from start to stop

    def load(self) -> None:
        """Read the file, and give the copy what it tells. Blocks: 10,000 records take some 0.2 s. Raises nothing."""
        if self._directory is None:
            return
        path = os.path.join(self._directory, HOSTS)
        try:
            loaded = read_snapshot(self._disk, path, self._clock.seconds())
        except Exception:
            self._log.failure("What was known of hosts can't be read")
            return
        if loaded.problem:
            self._log.warn("{path} does not tell all that was known of hosts: {problem}", path=path, problem=loaded.problem)
        self.adopt(loaded.records)
        self._saved = self._changes

    def start(self) -> None:
        """Begin to write what changes, in the process that will serve."""
        if self._directory is not None:
            self._worker.start()
            self._timer = self._clock.callLater(TICK_S, self._look)

    def stop(self) -> Deferred[None]:
        """Write what changed since the last write, and then no more. Fires when that is done, or after `STOP_S`. Never
        fails."""
        if self._timer is None:
            return succeed(None)
        if self._timer.active():
            self._timer.cancel()
        done: Deferred[None] = Deferred()
        timer = self._clock.callLater(STOP_S, done.callback, None)

        def in_time(_: None) -> None:
            if timer.active():
                timer.cancel()
                done.callback(None)

        Deferred.fromCoroutine(self._save_last()).addCallback(in_time)
        return done.addCallback(lambda _: self._worker.leave())

    def _turn(self) -> Deferred[None]:
        """Fires in the next turn."""
        turn: Deferred[None] = Deferred()
        self._clock.callLater(0, turn.callback, None)
        return turn

    # ------------------------------------------------------------------ in and out

    def adopt(self, records: Sequence[HostRecord]) -> None:
        """As `HostSharing`."""
        self._hosts.adopt(records, self._monotonic(), self._offset_s)

    @property
    def _changes(self) -> tuple[int, int]:
        return self._hosts.urgent_changes, self._hosts.changes

    def _look(self) -> None:
        self._timer = self._clock.callLater(TICK_S, self._look)
        saved, changes = self._saved, self._changes
        if saved == changes or self._saving is not None:
            return
        is_urgent = saved is not None and saved[0] != changes[0]
        if self._monotonic() - self._saved_at >= (AFTER_S if is_urgent else AFTER_OTHERS_S):
            self._begin()

    def _begin(self) -> Deferred[None]:
        """Begin to write. Fires when that has ended."""
        saving: Deferred[None] = Deferred()
        self._saving, self._saved, self._saved_at = saving, self._changes, self._monotonic()
        Deferred.fromCoroutine(self._gather())
        return saving

    async def _gather(self) -> None:
        """Collect all records, in steps, and write them."""
        gathered: list[HostRecord] = []
        records = self._hosts.records(self._offset_s)
        while step := list(islice(records, STEP)):
            gathered += step
            await self._turn()
        self.publish(gathered)

    def publish(self, records: Sequence[HostRecord]) -> None:
        """As `HostSharing`: write the file, so that it holds these records and no others."""
        Deferred.fromCoroutine(self._save(records))

    async def _save(self, records: Sequence[HostRecord]) -> None:
        directory = self._directory
        assert directory is not None
        try:
            await self._worker.run(lambda: write_snapshot(self._disk, directory, records))
        except OSError as error:
            self._saved = None
            if not self._has_trouble:
                self._has_trouble = True
                words = "What is known of hosts can't be written to {path}: {error}; a restart would try dead hosts again"
                self._log.warn(words, path=os.path.join(directory, HOSTS), error=error.strerror or error)
        except Exception:
            self._log.failure("What is known of hosts can't be written")
        else:
            if self._has_trouble:
                self._has_trouble = False
                self._log.info("What is known of hosts is written again")
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.callback(None)

    async def _save_last(self) -> None:
        for _ in range(2):  # a write that is under way, then one of what changed meanwhile
            if self._saving is not None:
                await self._saving
            elif self._saved != self._changes:
                await self._begin()


class LoadedHosts(NamedTuple):
    """What a file told. `problem`: why not all that was written; empty: all."""

    records: list[HostRecord]
    problem: str = ""


def read_snapshot(disk: IDisk, path: str, utc: float) -> LoadedHosts:
    """Return what the file of this name tells; nothing where there is none. Blocks; raises nothing that a disk or a file can
    cause."""
    try:
        found = read_state(disk, path)
    except Corrupt as error:
        return LoadedHosts([], error.text)
    except OSError as error:
        return LoadedHosts([], error.strerror or str(error))
    if found is None:
        return LoadedHosts([])
    if found.name != HOSTS:
        return LoadedHosts([], f"it holds {found.name}")
    if found.format > FORMAT:
        return LoadedHosts([], f"it is of format {found.format}, written by a newer Mailismus; this one reads {FORMAT}")
    parsed = [parse_line(line) for line in found.lines]
    whole = [record for record in parsed if record is not None]
    records = bounded([record for record in whole if not is_future(record, utc)])
    bad, future = found.bad + len(parsed) - len(whole), sum(is_future(record, utc) for record in whole)
    problems = [f"{bad} lines do not check"] * bool(bad) + [f"{future} lines are of the future"] * bool(future)
    return LoadedHosts(records, ", ".join(problems))


def write_snapshot(disk: IDisk, directory: str, records: Sequence[HostRecord]) -> None:
    """Replace the file by one of these records. Blocks. Raises `OSError`: the file is as it was then, and the room of the
    new one is free again if the disk permits. Durable afterwards: nothing."""
    lines = [line for record in bounded(records) if (line := format_line(record)) is not None]
    write_state(disk, directory, HOSTS, FORMAT, lines)
