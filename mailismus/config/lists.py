"""Lists: domains and users, named in the configuration or in files, one name a line.

*Rules*: `#` begins a comment, text behind `:` is ignored (a file of users of the original has passwords there), case is
ignored. A file that can't be read, or a name in it that can't be, is an error at the element that names the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mailismus.config.units import UnitError

MAX_BYTES = 256 * 2**20


def read_names(items: Sequence[str], parse_name: Callable[[str], str]) -> frozenset[bytes]:
    """The names of a list whose items are names, or absolute paths of files. Raises `UnitError`."""
    return frozenset(read_names_in_order(items, parse_name))


def read_names_in_order(items: Sequence[str], parse_name: Callable[[str], str]) -> dict[bytes, None]:
    """The same, each once, in the order they stand there."""
    names: dict[bytes, None] = {}
    for item in items:
        for name in _read_file(item, parse_name) if "/" in item else [parse_name(item)]:
            names[name.encode("ascii")] = None
    return names


def _read_file(path: str, parse_name: Callable[[str], str]) -> list[str]:
    try:
        with open(path, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        remedy = "write the path of a file that is there" if is_missing else "let this user read it"
        raise UnitError(f"{path} can't be read: {error.strerror}; {remedy}") from None
    if len(data) > MAX_BYTES:
        raise UnitError(f"{path} is larger than {MAX_BYTES} bytes")
    names = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        text = line.partition(b"#")[0].partition(b":")[0].strip().decode("utf-8", "replace")
        if not text:
            continue
        try:
            names.append(parse_name(text))
        except UnitError as error:
            raise UnitError(f"{path} line {number}: {error}") from None
    return names
