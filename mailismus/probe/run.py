"""The run of a probe: from the words of the command line to what is printed, and the exit code."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailismus.config.values.settings import Settings
from mailismus.deliver.routes.locator import Locator
from mailismus.deliver.security.profile import ReferenceNames
from mailismus.dns.mx import MxHost
from mailismus.errors import StartError
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.probe.render import host_json, host_lines, last_lines, way_lines
from mailismus.probe.report import HostReport, ProbeVerdict, Way, judge
from mailismus.probe.search import probe_hosts
from mailismus.probe.session import Prober, ProbeReactor
from mailismus.probe.target import Target, find_target

MakeLocator = Callable[[Settings, ProbeReactor], Locator]

_STATUS = {ProbeVerdict.GOOD: os.EX_OK, ProbeVerdict.MISSED: os.EX_TEMPFAIL, ProbeVerdict.SILENT: os.EX_UNAVAILABLE}


def run_probe(text: str, settings: Settings, make_locator: MakeLocator, *, is_json: bool) -> int:
    """Probe the hosts that `text` means, and print what they show. Raises `StartError`."""
    target = find_target(text, settings)
    from twisted.internet import reactor as installed

    reactor = cast(ProbeReactor, installed)
    ended: list[int | Failure] = []

    def begin() -> None:
        Deferred.fromCoroutine(_probe(text, target, settings, make_locator(settings, reactor), reactor, is_json)).addBoth(
            end
        )

    def end(result: int | Failure) -> None:
        ended.append(result)
        reactor.stop()

    reactor.callWhenRunning(begin)
    reactor.run()
    match ended:
        case [int(status)]:
            return status
        case [Failure(value=error)] if error is not None:
            raise error
    raise KeyboardInterrupt  # a signal stopped the reactor


async def _probe(
    text: str, target: Target, settings: Settings, locator: Locator, reactor: ProbeReactor, is_json: bool
) -> int:
    hosts = await _locate(text, target, locator)
    demanded = target.next_hop.profile.requirement
    way = Way(text, target.route, demanded.level, demanded.demanded_by, _names_of(demanded.names))
    prober = Prober(target, settings, reactor)
    reports: list[HostReport] = []
    if not is_json:
        _print(way_lines(way))
    async for report in probe_hosts(hosts, prober.probe):
        reports.append(report)
        _print([host_json(report, way)] if is_json else host_lines(report, way, time.time()))
    if not is_json:
        _print(last_lines(reports))
    return _STATUS[judge(reports)]


def _names_of(names: ReferenceNames) -> str:
    """The names that count at `verify`, for people."""
    return ", ".join((*((f"{names.domain} and all below it",) if names.domain else ()), *names.exact))


async def _locate(title: str, target: Target, locator: Locator) -> Sequence[MxHost]:
    """The hosts of a next hop. Raises `StartError`."""
    located = locator.locate(target.next_hop)
    hosts = await located if isinstance(located, Deferred) else located
    if isinstance(hosts, Outcome):
        status = os.EX_TEMPFAIL if hosts.kind is OutcomeKind.DEFERRED else os.EX_NOHOST
        raise StartError(status, f"{title}: {bytes(hosts.reply).decode('ascii', 'replace')}")
    return hosts


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
