"""Which cases there are: every call of the workload, every error that it can answer with, and how long that lasts."""

from __future__ import annotations

import errno
import itertools
import re
from collections.abc import Iterator

import attrs

from tests.durability.faults.case import MAIL, Ending, Scenario, rehearse
from tests.durability.faults.disk import Fault, FaultyDisk, Span, may_fail_with
from tests.durability.subjects.clustered import CLUSTERED
from tests.durability.subjects.interface import Subject

ERRNOS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.EROFS, errno.EINTR)

_FILE_OF_ACTS = (r"/q/state(/acts(\.new)?)?", "file of acts")
_COMMON_PLACES = ((r"/q/provider(\.new)?", "mark"), (r"/./lock", "lock"), (r"/.*", "other directory"))


def place_of(path: str, subject: Subject) -> str:
    """What kind of file or directory it is."""
    return next(name for pattern, name in (_FILE_OF_ACTS, *subject.places, *_COMMON_PLACES) if re.fullmatch(pattern, path))


@attrs.frozen
class Kind:
    """Calls that are alike."""

    stage: str
    place: str
    act: str

    def __str__(self) -> str:
        return f"{self.stage}: {self.act} {self.place}"


@attrs.frozen
class Case:
    """One run."""

    fault: Fault
    hardlinks: bool
    ending: Ending
    kind: Kind

    def __str__(self) -> str:
        fault = self.fault
        name = errno.errorcode[fault.errno] + (" torn" if fault.is_short else "")
        links = ", hard links" if self.hardlinks else ""
        return f"call {fault.call} ({self.kind}): {name} {fault.span.value}{links}, then {self.ending.value}"


def kinds(disk: FaultyDisk, subject: Subject = CLUSTERED) -> dict[Kind, list[int]]:
    """The calls of a rehearsal by kind, as numbers from 1."""
    found: dict[Kind, list[int]] = {}
    for call, ((act, path), stage) in enumerate(zip(disk.calls, disk.stages, strict=True), 1):
        found.setdefault(Kind(stage, place_of(path, subject), act), []).append(call)
    return found


def faults_of(kind: Kind, call: int, number: int, span: Span) -> Iterator[Fault]:
    """The faults that such a call can have: a write that fails leaves nothing, or half."""
    if may_fail_with(kind.act, number):
        yield Fault(call, number, span)
        if kind.act == "write":
            yield Fault(call, number, span, is_short=True)


def every_case(
    number: int,
    span: Span,
    *,
    ending: Ending,
    hardlinks: bool = False,
    subject: Subject = CLUSTERED,
    scenario: Scenario = MAIL,
) -> Iterator[Case]:
    """All calls of the workload, those of the scenario's stage."""
    for kind, calls in kinds(rehearse(subject, hardlinks=hardlinks, scenario=scenario), subject).items():
        for call in calls if scenario.stage in ("", kind.stage) else ():
            for fault in faults_of(kind, call, number, span):
                yield Case(fault, hardlinks, ending, kind)


def bounded_selection(subject: Subject = CLUSTERED, scenario: Scenario = MAIL) -> Iterator[Case]:
    """Some of each kind: EIO once at the first, and further errors, spans and endings in turn at others."""
    wheel = itertools.cycle(
        (number, span, ending)
        for number, span, ending in itertools.product(ERRNOS, Span, Ending)
        if span is not Span.ONCE or ending is Ending.HEALED
    )
    settings = (False, True) if subject.has_links else (False,)
    links = itertools.cycle(settings)
    found = {hardlinks: kinds(rehearse(subject, hardlinks=hardlinks, scenario=scenario), subject) for hardlinks in settings}
    for kind in sorted(set().union(*found.values()), key=str):
        if scenario.stage not in ("", kind.stage):
            continue
        for turn in range(3):
            hardlinks = next(links)
            hardlinks = hardlinks if kind in found[hardlinks] else not hardlinks
            calls = found[hardlinks][kind]
            call = calls[(0, len(calls) // 2, -1)[turn]]
            number, span, ending = (errno.EIO, Span.ONCE, Ending.HEALED) if not turn else next(wheel)
            while not may_fail_with(kind.act, number):
                number, span, ending = next(wheel)
            faults = list(faults_of(kind, call, number, span))
            yield Case(faults[turn % len(faults)], hardlinks, ending, kind)
