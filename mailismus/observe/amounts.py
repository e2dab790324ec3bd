"""Amounts: numbers, sizes and times in few characters, for screens (pure)."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo


def amount(value: float | None) -> str:
    """A number in at most 5 cells: `0.4`, `12`, `4310`, `86k`, `1.2M`; `<0.1` where that is too rough, `-` where it is
    unknown."""
    if value is None:
        return "-"
    if 0 < value < 0.05:
        return "<0.1"
    if value < 9.95:
        return f"{value:.1f}" if value and value != int(value) else f"{value:.0f}"
    for limit, unit in ((99_999.5, ""), (999_500.0, "k"), (999_500_000.0, "M")):
        if value < limit:
            scaled = value / {"": 1, "k": 1e3, "M": 1e6}[unit]
            return f"{scaled:.1f}{unit}" if unit == "M" and scaled < 99.5 else f"{scaled:.0f}{unit}"
    return f"{value / 1e9:.1f}G"


def size(value: float | None) -> str:
    """Bytes in at most 7 cells: `812 B`, `4.2 kB`, `81 MB`."""
    if value is None:
        return "-"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 999.5 or unit == "TB":
            return f"{value:.1f} {unit}" if value < 9.95 and unit != "B" else f"{value:.0f} {unit}"
        value /= 1000
    raise AssertionError("unreachable: TB is the last")


def lasting(seconds: float) -> str:
    """A time in at most 5 cells: `0`, `4s`, `12m`, `3h`, `5d`."""
    if seconds < 0.5:
        return "0"
    for limit, unit, one in ((99.5, "s", 1), (5970.0, "m", 60), (356_400.0, "h", 3600)):
        if seconds < limit:
            return f"{seconds / one:.0f}{unit}"
    return f"{seconds / 86400:.0f}d"


def milliseconds(seconds: float) -> str:
    """A short time in at most 7 cells: `0.4 ms`, `12 ms`, `1.3 s`."""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.1f} ms" if seconds < 0.00995 else f"{seconds * 1000:.0f} ms"


def noun(number: int, what: str) -> str:
    """The word for so many of a thing: `client`, `clients`."""
    return what if number == 1 else f"{what}s"


_NEAR_S = 12 * 3600.0
"""A time of day that is farther away needs its date."""


def lately(at: float, now: float, zone: tzinfo | None = None) -> str:
    """A moment of the past in at most 10 cells: its time of day, or its date where that could be another day's."""
    return moment(at, zone, "%H:%M:%S" if abs(now - at) <= _NEAR_S else "%b %d %Hh")


def zone_name(at: float, zone: tzinfo | None = None) -> str:
    """The zone that times of that moment are told in, `CET (UTC+01:00)`; None: the local one."""
    name, offset = moment(at, zone, "%Z"), moment(at, zone, "%z")
    told = f"UTC{offset[:3]}:{offset[3:5]}" if len(offset) >= 5 else "UTC"
    return name if offset == "+0000" and name == "UTC" else f"{name} ({told})"


def moment(at: float, zone: tzinfo | None = None, form: str = "%H:%M:%S") -> str:
    """UTC seconds as text in that zone (None: the local one) and the form of `strftime`; `-` for a time that no calendar
    has."""
    try:
        return datetime.fromtimestamp(int(at), UTC).astimezone(zone).strftime(form)
    except (OverflowError, ValueError, OSError):
        return "-"
