"""One state, open for change: what every act needs."""

from __future__ import annotations

from collections.abc import Callable

from tests.durability.log_model.state import Fate, Item, Known, Memory, Place, Setting, State
from tests.durability.model.open_state import OpenState


class World(OpenState[Memory]):
    """The disk, the process, what was sent, and what may still happen."""

    def __init__(self, state: State, setting: Setting) -> None:
        super().__init__(state.disk, state.memory, setting.without)
        self.sent = list(state.sent)
        self.left = state.left
        self.setting = setting
        self.scenario = setting.scenario

    def know_envelope(self, name: Place, known: Known | None) -> None:
        """The process knows something else about an envelope, or (None) nothing any more."""
        envelopes = dict(self.memory.envelopes)
        envelopes.pop(name, None)
        if known is not None:
            envelopes[name] = known
        self.know(envelopes=frozenset(envelopes.items()))

    def state(self) -> State:
        """As it is now."""
        return State(frozenset(self.disk.items()), self._memory, tuple(self.sent), self.left)

    def spend(self, **counts: int) -> None:
        """Something happens less often from now on."""
        self.left = self.left._replace(**{name: getattr(self.left, name) - count for name, count in counts.items()})

    def coming(self) -> list[Item]:
        """All that was asked for and not told of."""
        memory = self.memory
        return [*(memory.untold or ()), *(memory.flight or ()), *memory.waiting, *memory.riding, *memory.prepared]

    def decide(self, message: int, recipient: int, change: Callable[[Fate], Fate]) -> None:
        """The fate of an entry changes."""
        one = self.sent[message]
        self.sent[message] = one._replace(
            fates=tuple(change(fate) if n == recipient else fate for n, fate in enumerate(one.fates))
        )
