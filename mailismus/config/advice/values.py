"""Advice: what is wrong with a configuration whose every value is right (pure).

*Not here*: what schema and table see (`config.read.check`, `config.read.assemble`); limits of delivery (`delivery`); what
depends on this host (`places`) or on the time (`certificates`).
"""

from __future__ import annotations

from collections.abc import Iterator

from mailismus.config.advice.delivery import advise_delivery
from mailismus.config.advice.sentence import Advice, line_of, refuse, warn
from mailismus.config.read.check import Given
from mailismus.config.read.relays import SUBMISSIONS_PORT
from mailismus.config.table import application as app
from mailismus.config.table import deliver as dlv
from mailismus.config.table import queue as que
from mailismus.config.table import report as rep
from mailismus.config.table import submit as sub
from mailismus.config.table.root import MTA
from mailismus.config.table.tls import LATENT, RELAY_TLS
from mailismus.config.table.words import Setting, belongs_to
from mailismus.config.values.networks import Block, show_block
from mailismus.config.values.settings import Settings
from mailismus.config.values.units import show_size, show_time_ms
from mailismus.mail.address import domain_of

MIN_RECIPIENTS = 100
"""RFC 5321 4.5.3.1.8."""

_NOT_FULL = (".local", ".localdomain", ".localhost", ".lan", ".home", ".internal", ".invalid")
_WIDE = {4: 8, 6: 16}
"""Prefixes shorter than these are no network of anybody's own."""


def advise(top: Given, settings: Settings) -> Iterator[Advice]:
    """Everything that the values tell alone. `top`: those of the file, `settings`: made of them."""
    yield from _advise_name(top)
    yield from _advise_directory(top, settings)
    yield from _advise_retries(top)
    yield from _advise_journal(top)
    yield from _advise_listeners(top, settings)
    yield from _advise_relays(top, settings)
    yield from _advise_limits(top)
    yield from advise_delivery(top, settings)
    yield from _advise_reports(top, settings)


def _advise_name(top: Given) -> Iterator[Advice]:
    block = top.one(app.APPLICATION)
    name = block.get(app.ANNOUNCEHOST)
    if "." in name and not name.endswith(_NOT_FULL):
        return
    if block.is_written(app.ANNOUNCEHOST):
        found = f'<announcehost> is "{name}", which is no full name'
    else:
        found = f'<announcehost> is not written, and the name of this host, "{name}", is no full name'
    yield warn(
        line_of(app.ANNOUNCEHOST, top, block),
        f"{found}; other servers may refuse mail for that: write the name that DNS has for this host, "
        "such as <announcehost>mx.example.net</announcehost>",
    )


def _advise_directory(top: Given, settings: Settings) -> Iterator[Advice]:
    block = top.one(app.DIRECTORY)
    if settings.directory.users and not settings.directory.domains:
        yield warn(
            line_of(app.USERS, top, block),
            "there are <users> but no <domains>, so that no address is theirs: write <domains>, or remove <users>",
        )


def _advise_retries(top: Given) -> Iterator[Advice]:
    block = top.one(MTA).one(que.QUEUE)
    delays = block.get(que.RETRY_DELAYS)
    line = line_of(que.RETRY_DELAYS, top, top.one(MTA), block)
    for setting, what in ((que.RETRY_MAXTIME, "message"), (que.RETRY_MAXTIME_REPORTS, "report")):
        lifetime = block.get(setting)
        if delays[0] >= lifetime:
            yield warn(
                line,
                f"<retry_delays> begins with {_time(delays[0])}, but <{setting.name}> is {_time(lifetime)}: after its first "
                f"attempt a {what} gets one more, the last; write shorter delays, or a longer <{setting.name}>",
            )
            return
    lifetime, passed = block.get(que.RETRY_MAXTIME), 0.0
    for number, delay in enumerate(delays, 1):
        passed += delay
        if passed >= lifetime and (number < len(delays) or delay > lifetime):
            rest = "it never comes whole" if number == len(delays) else "what stands behind it never comes"
            yield warn(
                line,
                f"<retry_delays> make {_time(passed)} up to {_time(delay)}, but <retry_maxtime> is {_time(lifetime)}: "
                f"{rest}; write shorter delays, or a longer <retry_maxtime>",
            )
            return


def _advise_journal(top: Given) -> Iterator[Advice]:
    queue = top.one(MTA).one(que.QUEUE)
    if not belongs_to(que.MAXSIZE, queue.get(que.PROVIDER)):
        return
    block = queue.one(que.JOURNAL)
    segment, whole = block.get(que.SEGMENTSIZE), block.get(que.MAXSIZE)
    if segment > whole // 4:
        yield warn(
            line_of(que.SEGMENTSIZE, top, queue, block),
            f"<segmentsize> is {show_size(segment)}, but a segment gets a quarter of <maxsize> at most, here "
            f"{show_size(whole // 4)}: write less, or <maxsize>{show_size(segment * 4)}</maxsize>",
        )


def _advise_listeners(top: Given, settings: Settings) -> Iterator[Advice]:
    submit = top.one(MTA).one(sub.SUBMIT)
    listeners = submit.one(sub.LISTENERS)
    for listener, given in zip(settings.listeners, listeners.all(sub.LISTENER), strict=True):
        server = given.one(sub.SERVER)
        chain = (top, submit, listeners, given, server)
        networks = server.get(sub.RELAY_CLIENTS)
        line = line_of(sub.RELAY_CLIENTS, *chain)
        if not networks and not settings.directory.domains:
            yield warn(
                line,
                f"listener {listener.name} takes mail for nobody: there are neither <domains> nor its <relay_clients>; "
                "write one of them",
            )
        yield from _advise_networks(networks, line, listener.name, listener.interface)
        maxrecips = server.get(sub.MAXRECIPS)
        if 0 < maxrecips < MIN_RECIPIENTS:
            yield warn(
                line_of(sub.MAXRECIPS, *chain),
                f"<maxrecips> is {maxrecips}, but other servers may count on {MIN_RECIPIENTS} (RFC 5321 4.5.3.1.8): write at"
                f" least {MIN_RECIPIENTS}",
            )
        of_one, of_all = server.get(sub.MAXPEERCONNECTIONS), server.get(sub.MAXCONNECTIONS)
        if of_all and of_one > of_all:
            yield warn(
                line_of(sub.MAXPEERCONNECTIONS, *chain),
                f"<maxpeerconnections> is {of_one}, more than <maxconnections>, {of_all}, and limits nothing: write less, or"
                " 0",
            )
        yield from _advise_short(sub.TIMEOUT, 60.0, "5m", "4.5.3.2.7", "slow clients are cut off", *chain)


def _advise_networks(networks: tuple[Block, ...], line: int, name: str, interface: str) -> Iterator[Advice]:
    is_outside = not interface.startswith("127.") and interface != "::1"
    for number, network in enumerate(networks):
        if network.prefixlen < _WIDE[network.version] and is_outside:
            whom = "everybody" if not network.prefixlen else f"{network.num_addresses:,} addresses"
            yield warn(
                line,
                f"<relay_clients> of listener {name} has {show_block(network)}, that is {whom}: whoever connects from there "
                "may send mail to anywhere (an open relay); write the networks of your own clients",
            )
        for other in networks[:number]:
            if network.version != other.version or not network.overlaps(other):
                continue
            inner, outer = sorted((network, other), key=lambda block: -block.prefixlen)
            what = "stands there twice" if inner == outer else f"lies within {show_block(outer)}"
            yield warn(line, f"<relay_clients> overlap: {show_block(inner)} {what}; remove it")


def _advise_relays(top: Given, settings: Settings) -> Iterator[Advice]:
    local = {domain.decode("ascii") for domain in settings.directory.domains}
    for relay in top.one(MTA).one(dlv.DELIVER).one(dlv.RELAYS).all(dlv.RELAY):
        domains = relay.get(dlv.DESTDOMAINS)
        own = [domain for domain in domains if domain in local]
        host, port = relay.get(dlv.ADDRESS)
        title = f"relay {dlv.ADDRESS.kind.show((host, port))}"
        if own and len(own) == len(domains):
            yield warn(
                relay.line,
                f"{title} never matches: {_names(own)} in its destdomains {_are(own)} local, and that mail stays here;"
                f" remove the relay, or take {_them(own)} out of <domains>",
            )
        elif own:
            yield warn(
                relay.line,
                f"{_names(own)} in destdomains of {title} never matches: {_it_is(own)} local, and that mail stays here; "
                f"remove {_them(own)} there, or from <domains>",
            )
        tls = relay.all(RELAY_TLS)
        if port == SUBMISSIONS_PORT and all(block.get(LATENT) for block in tls):
            what = 'latent="N" in its <tls>' if tls else '<tls latent="N"/> in it'
            yield warn(
                relay.line,
                f"{title}: servers expect TLS from the start at port {port}, and never greet a client that waits for plain "
                f"text: write {what}, or another port",
            )
        for listener in settings.listeners:
            if port == listener.port and _may_be(host, listener.interface):
                yield refuse(
                    relay.line,
                    f"{title} is listener {listener.name} of this server itself: mail would go round in circles; write "
                    "another address, or remove the relay",
                )
            elif port == listener.port and host == settings.application.announcehost.decode("ascii"):
                yield warn(
                    relay.line,
                    f"{title} has the name of this server and the port of its listener {listener.name}: mail may go round"
                    " in circles; write the address of another server",
                )


def _may_be(host: str, interface: str) -> bool:
    """Whether that host is this one, at that interface."""
    is_here = host in ("localhost", "::1") or host.startswith("127.")
    return host == interface or (is_here and (not interface or (host == "localhost" and interface in ("127.0.0.1", "::1"))))


def _advise_limits(top: Given) -> Iterator[Advice]:
    deliver = top.one(MTA).one(dlv.DELIVER)
    of_host, of_all = deliver.get(dlv.MAXSERVERCONNECTIONS), deliver.get(dlv.MAXCONNECTIONS)
    if of_all and of_host > of_all:
        yield warn(
            line_of(dlv.MAXSERVERCONNECTIONS, top, deliver),
            f"<maxserverconnections> is {of_host}, more than <maxconnections>, {of_all}, and limits nothing: write less, or"
            " 0",
        )
    yield from _advise_intervals(top, deliver, dlv.INTERVAL_LOW, dlv.INTERVAL_HIGH)
    client = deliver.one(dlv.CLIENT)
    chain = (top, deliver, client)
    yield from _advise_short(
        dlv.TIMEOUT_FINAL, 60.0, "10m", "4.5.3.2.6", "a message that is answered later is sent twice", *chain
    )
    yield from _advise_short(dlv.CLIENT_TIMEOUT, 60.0, "5m", "4.5.3.2", "slow servers get no mail", *chain)


def _advise_reports(top: Given, settings: Settings) -> Iterator[Advice]:
    block = top.one(MTA).one(rep.REPORT)
    yield from _advise_intervals(top, block, rep.INTERVAL_LOW, rep.INTERVAL_HIGH)
    address = settings.report.ndr_from
    if domain_of(address) in settings.directory.domains and settings.directory.user_of(address) is None:
        yield warn(
            line_of(rep.NDR_FROM, top, block),
            f"<ndr_from> is {address.decode('ascii')}, who is not one of <users>: answers to reports would be refused; write"
            " an address that is read",
        )


def _advise_intervals(top: Given, block: Given, low: Setting[float], high: Setting[float]) -> Iterator[Advice]:
    if block.get(low) > block.get(high):
        yield warn(
            line_of(low, top, block),
            f"<{low.name}> of <{block.block.name}> is {_time(block.get(low))}, longer than <{high.name}>, "
            f"{_time(block.get(high))}: it is the pause while there is work; write the shorter one there",
        )


def _advise_short(
    setting: Setting[float], least_s: float, usual: str, section: str, harm: str, *blocks: Given
) -> Iterator[Advice]:
    value = blocks[-1].get(setting)
    if value < least_s:
        yield warn(
            line_of(setting, *blocks),
            f"<{setting.name}> of <{blocks[-1].block.name}> is {_time(value)}: {harm}; RFC 5321 {section} asks for {usual}",
        )


def _time(seconds: float) -> str:
    return show_time_ms(round(seconds * 1000))


def _names(names: list[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _it_is(names: list[str]) -> str:
    return "it is" if len(names) == 1 else "they are"


def _them(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"
