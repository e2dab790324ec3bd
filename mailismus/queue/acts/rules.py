"""The rules of one queue for mail to come: put in force, ended by their time, and their counts noted now and then.

*Rules*: a rule is durable in the file of acts before it is in force, and a start puts it in force before mail can arrive.
Its counts are written behind, `NOTE_S` apart, and at a stop: mail waits for no count, and a crash may leave some out.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from mailismus.queue.acting import Acting
from mailismus.queue.acts.act import Act, ActState
from mailismus.queue.acts.rule import Rule

LOOK_S = 1.0
"""Seconds between two looks at the rules, while there are some."""
NOTE_S = 10.0
"""Seconds between two notes of a rule's counts, at least."""
MOST_RULES = 20
"""Rules in force at once: each recipient of each new message is asked about them."""

Note = Callable[[Act], Coroutine[Deferred[Any], Any, None]]
"""Makes the state and the counts of an act durable. Raises `OSError`."""


async def _note_nothing(act: Act) -> None:
    """Before the start."""


class Rules:
    """Rules in force."""

    _log = Logger()

    def __init__(self, acting: Acting, clock: IReactorTime) -> None:
        self._acting, self._clock = acting, clock
        self._note: Note = _note_nothing
        self._rules: dict[int, Rule] = {}
        self._noted: dict[int, tuple[int, float]] = {}
        """Of each rule: the entries that were noted, and when (seconds of the clock)."""
        self._timer: IDelayedCall | None = None
        self._looking: Deferred[None] | None = None
        self._is_running = False

    def new(self, act: Act) -> Rule:
        """Return the rule of an act, not in force yet. Raises `FilterError`."""
        return Rule(act, self._acting.log)

    def add(self, rule: Rule) -> None:
        """Put a rule in force."""
        number = rule.act.number
        self._rules[number] = rule
        self._noted[number] = rule.act.entries, self._clock.seconds()
        self._show()
        self._set_timer()

    def end(self, number: int) -> Rule | None:
        """Let the rule of this act be in force no more, and return it; None: it was in force no more. Commits that it has a
        part in may be under way."""
        rule = self._rules.pop(number, None)
        self._noted.pop(number, None)
        self._show()
        return rule

    def act_of(self, number: int) -> Act | None:
        """Return the act of a rule in force as it is now; None: it is none."""
        rule = self._rules.get(number)
        return None if rule is None else rule.act

    def start(self, note: Note) -> None:
        """Begin to look at them. `note`: makes what changes durable."""
        self._note, self._is_running = note, True
        self._set_timer()

    async def stop(self) -> None:
        """Note the counts. They stay in force, for mail that comes while the server stops."""
        self._is_running = False
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        if self._looking is not None:
            await self._looking
        await self._look(is_last=True)

    def _show(self) -> None:
        self._acting.arrivals.put_in_force([rule for _, rule in sorted(self._rules.items())])

    def _set_timer(self) -> None:
        if self._is_running and self._rules and self._looking is None and not (self._timer and self._timer.active()):
            self._timer = self._clock.callLater(LOOK_S, self._begin_look)

    def _begin_look(self) -> None:
        looking = self._looking = Deferred.fromCoroutine(self._look(is_last=False))
        looking.addErrback(lambda failure: self._log.failure("rules for mail to come can't be looked at", failure))
        looking.addCallback(self._looked)

    def _looked(self, _: None) -> None:
        self._looking = None
        self._set_timer()

    async def _look(self, *, is_last: bool) -> None:
        now = self._acting.now()
        for number, rule in list(self._rules.items()):
            try:
                if rule.is_over(now):
                    await self._end_by_time(number, rule)
                elif is_last or self._clock.seconds() - self._noted[number][1] >= NOTE_S:
                    await self._note_counts(number, rule)
            except OSError as error:
                self._log.warn("The counts of rule {name} are not written: {error}", name=rule.act.name, error=error)

    async def _end_by_time(self, number: int, rule: Rule) -> None:
        self.end(number)
        await rule.quiet()
        await self._note(attrs.evolve(rule.act, state=ActState.DONE))

    async def _note_counts(self, number: int, rule: Rule) -> None:
        act = rule.act
        if number not in self._noted or act.entries == self._noted[number][0]:
            return
        self._noted[number] = act.entries, self._clock.seconds()
        await self._note(act)
