"""Advice on the limits of delivery: those that limit nothing, and destinations that never match (pure).

*Rules*: as in `advice.sentence`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mailismus.config.advice.sentence import Advice, line_of, warn
from mailismus.config.read.check import Given
from mailismus.config.table import deliver as dlv
from mailismus.config.table.root import MTA
from mailismus.config.table.tls import DESTINATION_TLS
from mailismus.config.values.settings import Settings
from mailismus.config.values.tls import TlsLevel
from mailismus.config.values.units import show_time_ms


def advise_delivery(top: Given, settings: Settings) -> Iterator[Advice]:
    """What the values of rates, destinations and the schedule tell. `top`: those of the file, `settings`: made of them."""
    deliver = top.one(MTA).one(dlv.DELIVER)
    yield from _advise_rates(top, deliver)
    yield from _advise_destinations(deliver, settings)
    yield from _advise_schedule(top, deliver)
    yield from _advise_names(settings)


def _advise_rates(top: Given, deliver: Given) -> Iterator[Advice]:
    messages, recipients = deliver.get(dlv.MESSAGES_PER_MINUTE), deliver.get(dlv.RECIPIENTS_PER_MINUTE)
    if messages > recipients > 0:
        yield warn(
            line_of(dlv.MESSAGES_PER_MINUTE, top, deliver),
            f"<messages_per_minute> is {messages}, more than <recipients_per_minute>, {recipients}, and limits nothing, for "
            "each message has a recipient: write less, or 0",
        )


def _advise_destinations(deliver: Given, settings: Settings) -> Iterator[Advice]:
    local = {domain.decode("ascii") for domain in settings.directory.domains}
    of_all = deliver.get(dlv.MAXCONNECTIONS)
    destinations = deliver.one(dlv.DESTINATIONS).all(dlv.DESTINATION)
    wide: dict[str, int] = {}  # what "*." stands before, and its line
    for number, destination in enumerate(destinations):
        domains = destination.get(dlv.DESTINATION_DOMAINS)
        for domain in domains:
            line = next((wide[above] for above in _above(domain) if above in wide), 0)
            if line:
                yield warn(
                    destination.line,
                    f'"{domain}" never matches: a wider pattern in line {line} comes before it, and the first one counts; '
                    "move this destination before that one",
                )
            if domain in local:
                yield warn(
                    destination.line,
                    f'"{domain}" in domains never matches: it is local, and that mail stays here; remove it there, or from '
                    "<domains>",
                )
        wide |= {domain[2:]: destination.line for domain in domains if domain.startswith("*.")}
        of_host = destination.get(dlv.DESTINATION_MAXSERVERCONNECTIONS)
        if of_all and of_host is not None and of_host > of_all:
            yield warn(
                destination.line,
                f"maxserverconnections is {of_host}, more than <maxconnections>, {of_all}, and limits nothing: write less, "
                "or 0",
            )
        yield from _advise_rates_of(destination, deliver)
        if _says_nothing(destination) and not _is_exception(domains, destinations[number + 1 :]):
            yield warn(
                destination.line,
                "this destination has no limit of its own: write maxserverconnections, messages_per_minute, "
                "recipients_per_minute or <tls>, or remove it",
            )


def _advise_rates_of(destination: Given, deliver: Given) -> Iterator[Advice]:
    messages = destination.get(dlv.DESTINATION_MESSAGES_PER_MINUTE)
    recipients = destination.get(dlv.DESTINATION_RECIPIENTS_PER_MINUTE)
    if recipients is None:
        recipients = deliver.get(dlv.RECIPIENTS_PER_MINUTE)
    if messages is not None and messages > recipients > 0:
        yield warn(
            destination.line,
            f"messages_per_minute is {messages}, more than recipients_per_minute, {recipients}, and limits nothing, for "
            "each message has a recipient: write less, or 0",
        )


def _says_nothing(destination: Given) -> bool:
    limits = (dlv.DESTINATION_MESSAGES_PER_MINUTE, dlv.DESTINATION_RECIPIENTS_PER_MINUTE)
    has_limits = any(destination.get(item) is not None for item in (dlv.DESTINATION_MAXSERVERCONNECTIONS, *limits))
    return not has_limits and not destination.all(DESTINATION_TLS)


def _is_exception(domains: tuple[str, ...], later: list[Given]) -> bool:
    """Whether a later, wider pattern would be for one of them."""
    wide = {pattern[2:] for one in later for pattern in one.get(dlv.DESTINATION_DOMAINS) if pattern.startswith("*.")}
    return any(above in wide for domain in domains for above in _above(domain))


def _above(domain: str) -> Iterator[str]:
    """The domains that `*.` may stand before in a wider pattern: the name without its first label, and so on."""
    name = domain.removeprefix("*.")
    while "." in name:
        name = name.partition(".")[2]
        yield name


def _advise_schedule(top: Given, deliver: Given) -> Iterator[Advice]:
    block = deliver.one(dlv.SCHEDULE)
    chain = (top, deliver, block)
    of_message, of_all = block.get(dlv.MAX_MESSAGE_CONCURRENCY), deliver.get(dlv.MAXCONNECTIONS)
    if block.is_written(dlv.MAX_MESSAGE_CONCURRENCY) and of_all and of_message > max(1, of_all // 2):
        yield warn(
            line_of(dlv.MAX_MESSAGE_CONCURRENCY, *chain),
            f"<max_message_concurrency> is {of_message}, but half of <maxconnections> is the most, here "
            f"{max(1, of_all // 2)}: write less, or more <maxconnections>",
        )
    backlog, of_connection = block.get(dlv.BACKLOG), deliver.get(dlv.MAXMESSAGES)
    if block.is_written(dlv.BACKLOG) and 0 < of_connection < backlog:
        yield warn(
            line_of(dlv.BACKLOG, *chain),
            f"<backlog> is {backlog}, but a connection takes <maxmessages>, {of_connection}, in all: write at most "
            f"{of_connection}",
        )
    idle_s, active_s = block.get(dlv.MAXAGE_IDLE), block.get(dlv.MAXAGE_ACTIVE)
    if idle_s > active_s > 0:
        yield warn(
            line_of(dlv.MAXAGE_IDLE, *chain),
            f"<maxage_idle> is {_time(idle_s)}, longer than <maxage_active>, {_time(active_s)}, at which every connection "
            "is closed: write less",
        )
    first_s, longest_s = block.get(dlv.RETRY_HOST), block.get(dlv.FORGET_HOST)
    if block.is_written(dlv.RETRY_HOST) and first_s > longest_s:
        yield warn(
            line_of(dlv.RETRY_HOST, *chain),
            f"<retry_host> is {_time(first_s)}, longer than <forget_host>, {_time(longest_s)}, after which its failure is "
            f"forgotten: write less, or <forget_host>{_time(first_s)}</forget_host>",
        )


def _advise_names(settings: Settings) -> Iterator[Advice]:
    """Certificates for addresses are rare."""
    for relay in settings.deliver.relays:
        tls = relay.tls
        if tls is not None and tls.level is TlsLevel.VERIFY and not tls.names and not _is_name(relay.host):
            yield warn(
                relay.line,
                f"the certificate of this relay must be for {relay.host}, an address, as few are: write its host name in "
                "address, or name= in <tls>",
            )


def _is_name(host: str) -> bool:
    return ":" not in host and not host.replace(".", "").isdigit()


def _time(seconds: float) -> str:
    return show_time_ms(round(seconds * 1000))
