"""Advice about a configuration, said on stdout and stderr."""

from __future__ import annotations

from mailismus.config.advice.certificates import advise_certificates
from mailismus.config.advice.host_probe import ThisHost
from mailismus.config.advice.places import advise_places
from mailismus.config.advice.sentence import AdviceSeverity
from mailismus.config.advice.values import advise
from mailismus.config.read.load import LoadedConfig
from mailismus.start.exits import complain, one_line


def say_advice(file: str, loaded: LoadedConfig, now: float) -> bool:
    """Say what is wrong beside the values, in the order of the file: warnings, and errors on stderr; whether there are no
    errors. `now`: UTC seconds."""
    settings = loaded.settings
    found = [
        *advise(loaded.given, settings),
        *advise_places(loaded.given, settings, ThisHost()),
        *advise_certificates(settings.certificates, now),
    ]
    for advice in sorted(found, key=lambda advice: advice.line):
        if advice.severity is AdviceSeverity.WARNING:
            print(one_line(f"{file}:{advice.line}: warning: {advice.text}"), flush=True)
        else:
            complain(f"{file}:{advice.line}: {advice.text}")
    return all(advice.severity is AdviceSeverity.WARNING for advice in found)
