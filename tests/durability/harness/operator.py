"""An administrator who acts on the queue while its server is killed: hold, release, delete, bounce, redirect, rules for mail
to come, undo.

The filters select by digits of the numbers of messages, so that acts lie upon each other. Redirections lead to the same next
hop, for many entries at once; or single recipients to another domain, where the sink knows them. No report is written
(`NO_REPORTS`), so that every bounce can be undone. What a kill cut off is left to the next start. In the end all acts are
undone, the newest first: then no entry may be held or deleted, and each was in one state all the time. What that means for
the mail itself is the judgement of the round: it must arrive, once.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import attrs

from benchmarks.stage.administrator import connected
from benchmarks.stage.servers import Ours
from benchmarks.stage.trial import administer
from mailismus.admin.client.acting import act, all_acts, go_on
from mailismus.admin.client.server import ServerSource
from mailismus.admin.protocol.acting import ShownAct
from mailismus.errors import StartError
from mailismus.queue.acts.act import UNDOABLE, ActKind, ActState
from tests.support.processes import TrialError

KINDS = (
    *(ActKind.HOLD, ActKind.HOLD, ActKind.DELETE, ActKind.DELETE, ActKind.RELEASE, ActKind.HOLD_INCOMING),
    *(ActKind.BOUNCE, ActKind.REDIRECT, ActKind.REDIRECT),
)
"""What is ordered, by chance; an undoing comes as often as all of it."""
NO_REPORTS = "<delay_start>6h</delay_start>"
"""A setting of `report`: longer than a round."""
OTHER_DOMAIN = "moved.trial.example"
SAMPLE = 50
"""Entries of which one gets another recipient."""
MOST_OPEN = 12
"""Acts that wait for their undoing; of more the next one is undone."""
FINAL = frozenset((ActState.DONE, ActState.UNDONE))
TIMEOUT_S = 120.0


@attrs.define
class Acted:
    """What was ordered, and what became of it."""

    ordered: Counter[str] = attrs.field(factory=Counter)
    """Orders whose answer came to its end, by kind, undoings too."""
    cut_off: int = 0
    """Orders whose answer did not: the server was killed or stopped."""
    entries: int = 0
    """Entries that acts have changed, as they count them themselves."""
    restored: int = 0
    faults: list[str] = attrs.field(factory=list)
    """What may not be."""


class Operator(threading.Thread):
    """Orders acts of the server at this socket until `end`."""

    def __init__(self, socket_path: Path, seed: int, sink_port: int) -> None:
        super().__init__(daemon=True)
        self._path, self._rng, self._relay = socket_path, random.Random(seed), f"127.0.0.1:{sink_port}"
        self._is_over = threading.Event()
        self.acted = Acted()

    def run(self) -> None:
        """Until it is ended."""
        while not self._is_over.wait(self._rng.random() * 0.2):
            try:
                with connected(self._path) as source:
                    self._order(source)
            except ConnectionRefusedError:
                continue  # none runs now
            except (StartError, OSError):  # it was killed
                self.acted.cut_off += 1

    def end(self) -> None:
        """Order nothing more."""
        self._is_over.set()
        self.join(TIMEOUT_S)

    def _order(self, source: ServerSource) -> None:
        rng = self._rng
        open_acts = [one.act for one in all_acts(source) if one.act.order.kind in UNDOABLE and one.act.undone_by < 0]
        if open_acts and (rng.random() < 0.5 or len(open_acts) > MOST_OPEN):
            list(go_on(source, rng.choice(open_acts).name, is_undo=True))
            self.acted.ordered["undo"] += 1
            return
        kind = rng.choice(KINDS)
        words = [f"recipient=*{rng.randrange(10)}@*"] if rng.random() < 0.7 else ["domain=to.trial.example", "larger=2K"]
        for_s = rng.choice((None, None, 1.0, 3.0)) if kind in (ActKind.HOLD, ActKind.HOLD_INCOMING) else None
        to = ""
        if kind is ActKind.REDIRECT:
            words, to = self._other_way(source, words)
        list(act(source, kind, words, "trial", None, for_s, to))
        self.acted.ordered[f"{kind.value} to a recipient" if "@" in to else kind.value] += 1

    def _other_way(self, source: ServerSource, words: list[str]) -> tuple[list[str], str]:
        """Return what is redirected, and where to: one recipient to another domain, or these to a relay."""
        if self._rng.random() < 0.7:
            found = [entry for message in source.messages((), SAMPLE) for entry in message.entries]
            if found:
                recipient = self._rng.choice(found).final_recipient.decode()
                return [f"recipient={recipient}"], f"{recipient.partition('@')[0]}@{OTHER_DOMAIN}"
        return words, self._relay


def settle_all(server: Ours, path: Path, acted: Acted) -> None:
    """Undo every act, the newest first, and look at what is left: nothing may be held or deleted, and no entry be there
    twice. Raises: TrialError."""
    acts = _when_over(path)
    acted.faults += twice(server)
    for one in sorted(acts, key=lambda one: -one.act.number):
        if one.act.order.kind in UNDOABLE:
            with connected(path) as source:
                list(go_on(source, one.act.name, is_undo=True))
    acts = _when_over(path)
    acted.entries = sum(one.act.entries for one in acts)
    acted.restored = sum(one.act.restored for one in acts)
    counts = json.loads(administer(server, "queue", "count", "--json"))
    acted.faults += [f"{area}: {counts[area]['entries']} left" for area in ("hold", "deleted") if counts[area]["entries"]]
    acted.faults += twice(server)


def _when_over(path: Path) -> list[ShownAct]:
    """The acts, once none is under way but rules, and waits for no delivery; or the last look. Raises: TrialError."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while True:
        with connected(path) as source:
            acts = list(all_acts(source))
        open_states = {one.act.state.value for one in acts} - {state.value for state in (*FINAL, ActState.IN_FORCE)}
        if not open_states - {ActState.WAITING.value, ActState.INTERRUPTED.value}:
            return acts
        if time.monotonic() > deadline_s:
            raise TrialError(f"acts never end: {open_states}")
        time.sleep(0.2)


def twice(server: Ours) -> list[str]:
    """Entries that the queue tells of twice. While mail moves, a list tells of it once or not at all."""
    lines = administer(server, "queue", "list", "--json").splitlines()
    entries = Counter(entry for line in lines for entry in _entries_of(json.loads(line)))
    return [f"in two states: {entry}" for entry, count in entries.items() if count > 1][:5]


def _entries_of(value: Mapping[str, object]) -> list[tuple[object, object]]:
    recipients = value["recipients"]
    assert isinstance(recipients, list)
    return [(value["queue_id"], one["number"]) for one in recipients]
