"""Advice about a configuration, said on stdout and stderr."""

from __future__ import annotations

from collections import Counter

from mailismus.config.advice.certificates import advise_certificates
from mailismus.config.advice.host_probe import ThisHost
from mailismus.config.advice.places import advise_places
from mailismus.config.advice.sentence import Advice, AdviceSeverity, line_of, refuse
from mailismus.config.advice.values import advise
from mailismus.config.read.load import LoadedConfig
from mailismus.config.table.queue import PROVIDER, QUEUE
from mailismus.config.table.root import MTA
from mailismus.start.exits import complain, one_line


def say_advice(file: str, loaded: LoadedConfig, now: float, known: LoadedConfig | None = None, lacks: str = "") -> bool:
    """Say what is wrong beside the values, in the order of the file: warnings, and errors on stderr; whether there are no
    errors. `now`: UTC seconds. `known`: another configuration, whose warnings are not said again. `lacks`: as
    `IProvider.lacks`."""
    found = find_advice(loaded, now)
    if lacks:
        place = line_of(PROVIDER, loaded.given, loaded.given.one(MTA).one(QUEUE))
        found = sorted([*found, refuse(place, lacks)], key=lambda advice: advice.line)
    said = Counter(() if known is None else (advice.text for advice in find_advice(known, now)))
    for advice in found:
        is_said = said[advice.text] > 0
        said[advice.text] -= 1
        if advice.severity is not AdviceSeverity.WARNING:
            complain(f"{file}:{advice.line}: {advice.text}")
        elif not is_said:
            print(one_line(f"{file}:{advice.line}: warning: {advice.text}"), flush=True)
    return all(advice.severity is AdviceSeverity.WARNING for advice in found)


def find_advice(loaded: LoadedConfig, now: float) -> list[Advice]:
    """Find what is wrong beside the values, in the order of the file. `now`: UTC seconds."""
    settings = loaded.settings
    found = [
        *advise(loaded.given, settings),
        *advise_places(loaded.given, settings, ThisHost()),
        *advise_certificates(settings.certificates, now),
    ]
    return sorted(found, key=lambda advice: advice.line)
