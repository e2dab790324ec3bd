"""One state, open for change: what every act needs."""

from __future__ import annotations

from collections.abc import Callable

from tests.durability.model.open_state import OpenState
from tests.durability.model.records import Arrival, Line, Place, Settle, SpoolId
from tests.durability.model.replay import live_lines
from tests.durability.model.state import Fate, Left, Memory, Setting, State


class World(OpenState[Memory]):
    """The disk, the process, what was sent, and what may still happen."""

    def __init__(self, state: State, setting: Setting) -> None:
        super().__init__(state.disk, state.memory, setting.without)
        self.sent = list(state.sent)
        self.left = state.left
        self.setting = setting
        self.scenario = setting.scenario

    def state(self) -> State:
        """As it is now."""
        return State(frozenset(self.disk.items()), self._memory, tuple(self.sent), Left(*self.left))

    def lines(self) -> dict[Line, Place | None]:
        """Every live line and its place."""
        return live_lines(self.disk, self.memory)

    # what is outside

    def promise(self, spool_id: SpoolId, old: str, new: str) -> None:
        """The message's status goes from one of these to another."""
        for number, one in enumerate(self.sent):
            if one.spool_id == spool_id and one.status in old:
                self.sent[number] = one._replace(status=new)

    def decide(self, line: Line, change: Callable[[Fate], Fate]) -> None:
        """The fate of an entry changes."""
        (spool_id, recipient), _ = line
        for number, one in enumerate(self.sent):
            if one.spool_id == spool_id and one.status in "sar":
                fates = tuple(change(fate) if n == recipient else fate for n, fate in enumerate(one.fates))
                self.sent[number] = one._replace(fates=fates)

    # what is on its way into the journal

    def coming(self) -> set[SpoolId]:
        """Messages whose files must stay though no live line needs them yet, or none that is known."""
        memory = self.memory
        records = [*memory.waiting, *(memory.flight or ()), *(memory.untold or ())]
        arriving = {record.spool_id for record in records if isinstance(record, Arrival)}
        return arriving | {spool_id for spool_id, _ in memory.drafts} | memory.held

    def asked(self) -> set[Line]:
        """Lines whose settle has gone into the journal and is not in the indexes yet."""
        memory = self.memory
        records = [*memory.waiting, *(memory.flight or ()), *(memory.untold or ())]
        ends = {end.line for record in records if isinstance(record, Arrival) for end in record.ends}
        return ends | {record.line for record in records if isinstance(record, Settle)}
