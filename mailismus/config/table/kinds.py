"""Kinds of values: how a setting's value is parsed and printed, and its pattern in a schema.

A kind's pattern (in the regular expressions of XML Schema part 2, appendix F) takes whatever its `parse` takes, as near
as a pattern can say it: bounds of times and sizes, and which names exist, only `parse` knows.

*Rules*: pure; `parse` raises `units.UnitError`. Where the context matters (paths, tokens) it is an argument.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import attrs

from mailismus.config.values import names, units
from mailismus.config.values.networks import BLOCK_FORM, Block, parse_block, show_block
from mailismus.config.values.units import UnitError

_UNITS = ("d", "h", "m", "s", "ms")
_TIME_PATTERN = "[0-9]+|" + "|".join(
    f"[0-9]+{unit}" + "".join(f"([0-9]+{lower})?" for lower in _UNITS[place + 1 :]) for place, unit in enumerate(_UNITS)
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@attrs.frozen
class ReadContext:
    """Context of a value: the configuration file's folder (absolute) and the values of the tokens known so far. `providers`:
    queue providers that the program has, beside those of the table."""

    folder: str
    tokens: Mapping[str, str]
    providers: tuple[str, ...] = ()


@attrs.frozen
class ValueKind(Generic[T_co]):
    """One kind of value. `lowest` and `highest` are as written in the file, empty for no bound."""

    form: str
    pattern: str
    parse: Callable[[str, ReadContext], T_co]
    show: Callable[[Any], str]
    """Any: a kind shows what it has parsed, and a table of kinds is covariant."""
    lowest: str = ""
    highest: str = ""
    is_number: bool = False
    """Bounds of plain numbers can be said in a schema."""
    separator: str = ""
    """Of a list: what stands between two items."""


def _within(parse: Callable[[str], int], text: str, lowest: str, highest: str) -> int:
    value = parse(text)
    if lowest and value < parse(lowest):
        raise UnitError(f"write at least {lowest}")
    if highest and value > parse(highest):
        raise UnitError(f"write at most {highest}")
    return value


def count(lowest: int = 0, highest: int = 1_000_000_000) -> ValueKind[int]:
    """A whole number."""
    return ValueKind(
        form=f"{units.COUNT_FORM} from {lowest} to {highest}",
        pattern="[0-9]+",
        parse=lambda text, context: _within(units.parse_count, text, str(lowest), str(highest)),
        show=str,
        lowest=str(lowest),
        highest=str(highest),
        is_number=True,
    )


def optional_count(highest: int = 1_000_000_000) -> ValueKind[int | None]:
    """A whole number, or nothing: another setting has the value then."""
    number = count(0, highest)
    return ValueKind(
        form=number.form,
        pattern="([0-9]+)?",
        parse=lambda text, context: number.parse(text, context) if text else None,
        show=lambda value: "" if value is None else str(value),
    )


def time(lowest: str = "0", highest: str = "365d") -> ValueKind[float]:
    """A time, in seconds."""
    return ValueKind(
        form=units.TIME_FORM,
        pattern=_TIME_PATTERN,
        parse=lambda text, context: _within(units.parse_time_ms, text, lowest, highest) / 1000,
        show=lambda value: units.show_time_ms(round(value * 1000)),
        lowest=lowest,
        highest=highest,
    )


def size(lowest: str = "0", highest: str = "1000G") -> ValueKind[int]:
    """A size in bytes."""
    return ValueKind(
        form=units.SIZE_FORM,
        pattern="[0-9]+(K|M|G|Ki|Mi|Gi)?",
        parse=lambda text, context: _within(units.parse_size, text, lowest, highest),
        show=units.show_size,
        lowest=lowest,
        highest=highest,
    )


def choice(built: tuple[str, ...], unbuilt: tuple[str, ...] = ()) -> ValueKind[str]:
    """One of some words; those of `unbuilt` will come."""

    def parse(text: str, context: ReadContext) -> str:
        if text in unbuilt:
            raise UnitError(f"that is not available in this version; write {' or '.join(built)}, or remove it")
        if text not in built:
            raise UnitError(f"write {' or '.join(built)}")
        return text

    return ValueKind(form=" or ".join(built), pattern="|".join(built), parse=parse, show=str)


def optional_choice(words: tuple[str, ...]) -> ValueKind[str]:
    """One of some words, or nothing: another setting has the value then."""
    kind = choice(words)
    return attrs.evolve(
        kind,
        pattern=f"({kind.pattern})?".replace(".", r"\."),
        parse=lambda text, context: kind.parse(text, context) if text else "",
    )


def words(known: tuple[str, ...]) -> ValueKind[tuple[str, ...]]:
    """A list of some words, in any case, separated by bars; or nothing."""

    def parse(text: str, context: ReadContext) -> str:
        word = text.upper()
        if word not in known:
            raise UnitError(f'"{text}" is not known: write some of {" | ".join(known)}')
        return word

    pattern = "|".join(
        "".join(f"[{letter}{letter.lower()}]" if letter.isalpha() else letter for letter in word) for word in known
    )
    return list_of(f'some of {", ".join(known)}, separated by "|"', parse, str, pattern.replace("-", r"\-"))


def provider(built: tuple[str, ...], unbuilt: tuple[str, ...]) -> ValueKind[str]:
    """The name of a queue provider: one of the table, or one that this program has beside those."""
    kind = choice(built, unbuilt)

    def parse(text: str, place: ReadContext) -> str:
        return text if text in place.providers else kind.parse(text, place)

    return attrs.evolve(kind, parse=parse)


def only(built: str) -> ValueKind[str]:
    """The one value that is built of a setting that is not."""

    def parse(text: str, context: ReadContext) -> str:
        if text != built:
            raise UnitError(f"that is not available in this version; write {built}, or remove it")
        return text

    return ValueKind(form=built, pattern=built, parse=parse, show=str)


def list_of(
    form: str,
    item: Callable[[str, ReadContext], T],
    show: Callable[[T], str],
    pattern: str,
    separator: str = "|",
    least: int = 0,
) -> ValueKind[tuple[T, ...]]:
    """A list; `least` 1: not an empty one."""

    def parse(text: str, context: ReadContext) -> tuple[T, ...]:
        items = tuple(item(part, context) for part in units.parse_list(text, separator))
        if len(items) < least:
            raise UnitError(f"write {form}")
        return items

    bar = f" ?{chr(92) if separator == '|' else ''}{separator} ?"
    whole = f"({pattern})({bar}({pattern}))*"
    glue = f" {separator} " if separator == "|" else separator
    return ValueKind(
        form,
        whole if least else f"({whole})?",
        parse,
        lambda value: glue.join(show(part) for part in value),
        separator=glue,
    )


_FALSE_PATTERN = "[Nn]|[Nn][Oo]|[Ff][Aa][Ll][Ss][Ee]"
_TRUE_PATTERN = "[Yy]|[Yy][Ee][Ss]|[Tt][Rr][Uu][Ee]"


def _parse_time_s(text: str, context: ReadContext) -> float:
    return _within(units.parse_time_ms, text, "100ms", "365d") / 1000


BOOLEAN: ValueKind[bool] = ValueKind(
    units.BOOLEAN_FORM,
    f"{_TRUE_PATTERN}|{_FALSE_PATTERN}",
    lambda text, context: units.parse_boolean(text),
    units.show_boolean,
)
"""`Y` or `N`, also in words."""

DELAYS: ValueKind[tuple[float, ...]] = list_of(
    'times separated by "|", such as 15m | 30m | 2h',
    _parse_time_s,
    lambda value: units.show_time_ms(round(value * 1000)),
    _TIME_PATTERN,
    least=1,
)

_NETWORK_PATTERN = r"[0-9]+(\.[0-9]+){0,3}/[0-9]+|[0-9]+(\.[0-9]+){3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(/[0-9]+)?"

NETWORKS: ValueKind[tuple[Block, ...]] = list_of(
    f'networks separated by "|", each {BLOCK_FORM}', lambda text, context: parse_block(text), show_block, _NETWORK_PATTERN
)

ATTRIBUTE_NETWORKS: ValueKind[tuple[Block, ...]] = list_of(
    f'networks separated by ",", each {BLOCK_FORM}',
    lambda text, context: parse_block(text),
    show_block,
    _NETWORK_PATTERN,
    separator=",",
)

_DOMAIN_PATTERN = r"[A-Za-z0-9]([A-Za-z0-9\-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9\-]*[A-Za-z0-9])?)*"
_TOKEN_PATTERN = "%(" + "|".join(names.TOKENS) + ")%"
_PATH_PATTERN = "([^%]|" + _TOKEN_PATTERN + ")+"

DOMAIN: ValueKind[str] = ValueKind(
    names.DOMAIN_FORM,
    f"{_DOMAIN_PATTERN}|%SYSNAME%",
    lambda text, context: names.parse_domain(names.expand_tokens(text, {"SYSNAME": context.tokens["SYSNAME"]})),
    str,
)

DOMAINS: ValueKind[tuple[str, ...]] = list_of(
    'domain names separated by ","', lambda text, context: names.parse_domain(text), str, _DOMAIN_PATTERN, separator=","
)

HOST_NAMES: ValueKind[tuple[str, ...]] = list_of(
    'domain names separated by "|"', lambda text, context: names.parse_domain(text), str, _DOMAIN_PATTERN
)

DOMAIN_PATTERNS: ValueKind[tuple[str, ...]] = list_of(
    f'domains separated by ",", each {names.PATTERN_FORM}',
    lambda text, context: names.parse_domain_pattern(text),
    str,
    rf"(\*\.)?{_DOMAIN_PATTERN}",
    separator=",",
    least=1,
)

SENDERS: ValueKind[tuple[str, ...]] = list_of(
    f'senders separated by ",", each {names.SENDER_FORM}',
    lambda text, context: names.parse_sender(text),
    str,
    f"{_DOMAIN_PATTERN}|[^,]+@[^,@]+",
    separator=",",
)

LISTENER_NAME: ValueKind[str] = ValueKind(
    "a name",
    r"([A-Za-z0-9][A-Za-z0-9._\-]*)?",
    lambda text, context: names.parse_listener_name(text) if text else "",
    str,
)

INTERFACE: ValueKind[str] = ValueKind(
    "an IP address of this host",
    r"(\[?[0-9A-Fa-f:.]+(%.+)?\]?)?",
    lambda text, context: names.parse_interface(text),
    str,
)

_IP_PORT_PATTERN = r"\[[0-9A-Fa-f:.]+\](:[0-9]+)?|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*|[0-9]+(\.[0-9]+){3}(:[0-9]+)?"


DNS_SERVERS: ValueKind[tuple[tuple[str, int], ...]] = list_of(
    'name servers separated by "|", each an IP address and a port, such as 192.0.2.53:53 or [2001:db8::1]:53',
    lambda text, context: names.parse_ip_port(text, 53),
    names.format_host_port,
    _IP_PORT_PATTERN,
)

HOST_PORT: ValueKind[tuple[str, int]] = ValueKind(
    names.ADDRESS_FORM,
    r"\[[0-9A-Fa-f:.]+\](:[0-9]+)?|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*|[A-Za-z0-9_.\-]+(:[0-9]+)?",
    lambda text, context: names.parse_host_port(text, 0),
    names.format_host_port,
)
"""A host and a port; 0: no port is written."""

FILE_NAMES: ValueKind[str] = ValueKind(
    names.PARTS_FORM, r"[#XRIMPQ]+|n_m", lambda text, context: names.parse_name_parts(text), str
)

LMTP_SERVER: ValueKind[tuple[str, int]] = ValueKind(
    names.LMTP_FORM,
    rf"unix:{_PATH_PATTERN}|\[[0-9A-Fa-f:.]+\]:[0-9]+|[A-Za-z0-9_.\-]+:[0-9]+",
    lambda text, context: names.parse_lmtp_server(text, context.tokens["DIRTOP"], context.tokens),
    lambda value: names.format_host_port(value) if value[1] else f"unix:{value[0]}",
)
"""A host and a port, or the path of a Unix socket and 0."""

USER: ValueKind[str] = ValueKind(
    "a user's name",
    r"([A-Za-z0-9_+][A-Za-z0-9_+.\-]*)?",
    lambda text, context: names.parse_user(text) if text else "",
    str,
)


MAILBOX: ValueKind[str] = ValueKind(
    names.MAILBOX_FORM, r"([!-~]+@[!-~]+)?", lambda text, context: names.parse_mailbox(text) if text else "", str
)

TEXT: ValueKind[str] = ValueKind(names.TEXT_FORM, r"[^\p{C}]{1,200}", lambda text, context: names.parse_text(text), str)
"""One line of text."""


def _parse_name_or_file(text: str, context: ReadContext) -> str:
    expanded = names.expand_tokens(text, context.tokens)
    return names.parse_path(text, context.tokens["DIRTOP"], context.tokens) if "/" in expanded else expanded


NAMES_OR_FILES: ValueKind[tuple[str, ...]] = list_of(
    'names or files separated by "|"; what has a "/" is a file with one name a line',
    _parse_name_or_file,
    str,
    r"[^|%]([^|])*|%[^|]*",
)

PATH: ValueKind[str] = ValueKind(
    "a path; a relative one begins at the root",
    _PATH_PATTERN,
    lambda text, context: names.parse_path(text, context.tokens["DIRTOP"], context.tokens),
    str,
)

OPTIONAL_PATH: ValueKind[str] = attrs.evolve(
    PATH, pattern=f"({_PATH_PATTERN})?", parse=lambda text, context: PATH.parse(text, context) if text else ""
)
"""A path, or nothing."""

LOG_FILE: ValueKind[str] = ValueKind(
    "a path, with %DT% (the day) or %Y% %M% %D% %h% in it where a new file is to begin; a relative one begins at the root",
    "([^%]|%(" + "|".join((*names.TOKENS, *names.DATE_TOKENS)) + ")%)*",
    lambda text, context: names.parse_log_file(text, context.tokens["DIRTOP"], context.tokens) if text else "",
    str,
)

ROOT_PATH: ValueKind[str] = ValueKind(
    "a path; a relative one begins at this file's folder",
    _PATH_PATTERN,
    lambda text, context: names.parse_path(text, context.folder, {"SYSNAME": context.tokens["SYSNAME"]}),
    str,
)

INNER_PATH: ValueKind[str] = ValueKind(
    "a relative path", "[^%/][^%]*", lambda text, context: names.parse_inner_path(text), str
)


def _parse_minfree(text: str, context: ReadContext) -> tuple[float, int]:
    if text.endswith("%"):
        digits, dot, decimals = text[:-1].partition(".")
        if units.parse_count(digits) >= 100 or (dot and len(decimals) > 3):
            raise UnitError("write less than 100%, with at most 3 decimals")
        return (units.parse_count(digits) * 1000 + units.parse_count((decimals or "0").ljust(3, "0"))) / 100_000, 0
    return 0.0, _within(units.parse_size, text, "0", "1000000G")


def _show_minfree(value: tuple[float, int]) -> str:
    return f"{value[0] * 100:g}%" if value[0] else units.show_size(value[1])


MINFREE: ValueKind[tuple[float, int]] = ValueKind(
    "a share such as 2%, a size such as 500M, or 0 for off",
    r"[0-9]{1,2}(\.[0-9]{1,3})?%|[0-9]+(K|M|G|Ki|Mi|Gi)?",
    _parse_minfree,
    _show_minfree,
)

port = functools.partial(count, highest=65535)
"""A TCP port; the lowest is given."""
