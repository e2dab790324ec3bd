"""Effective values: every setting of one configuration as it is in force, with its name and where it comes from. Pure."""

from __future__ import annotations

import attrs


@attrs.frozen
class Effective:
    """One effective value: where it stands (`mta/queue/minfree`), its text, and its line (0: the default).

    `near` is its line, or that of the innermost element around it that is written. `place` is its path with the number
    of every block that may stand several times; `content` a digest of what the files that it names hold, if it names
    some. `asked`: the text that the configuration says, where the value in force is lower, and `lowered_to_fit` what it
    had to fit.
    """

    path: str
    text: str
    line: int
    is_lowered: bool = False
    place: str = ""
    is_fixed: bool = False
    content: bytes = attrs.field(default=b"", repr=False)
    asked: str = ""
    near: int = 0
    lowered_to_fit: str = ""
