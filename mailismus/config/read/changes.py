"""Changes: the settings in which two configurations differ, by their paths.

*Rules*: pure. A value has changed when its text has, or what the files that it names hold (users, certificates). What may
not change while the server runs is said by the table (`Setting.fixed`). A block that is there in one of both alone has
changed by what is written in it, or by all of its values if nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from mailismus.config.values.effective import Effective

_NUMBER = re.compile(r"\[[0-9]+\]")


@attrs.frozen
class SettingChange:
    """One setting that differs. `old`, `new`: its texts, None where it is not there. `line`: where the new file says so, 0:
    the default."""

    path: str
    old: str | None
    new: str | None
    line: int
    is_fixed: bool
    place: str = attrs.field(default="", eq=False)
    """The path with the number of every block, as `Effective.place`."""

    def __str__(self) -> str:
        """Its name and both texts, `mta/queue/minfree (2% before, 0 now)`."""
        if self.old == self.new:
            return f"{self.path} (the file that it names holds something else)"
        return f"{self.path} ({_shown(self.old)} before, {_shown(self.new)} now)"


def what_changed(old: Sequence[Effective], new: Sequence[Effective]) -> tuple[SettingChange, ...]:
    """Return the settings that differ, in the order of the new configuration, then those that are gone."""
    before = {value.place: value for value in old}
    now = {value.place: value for value in new}
    found = []
    added = _defaults_beside([value for value in new if value.place not in before])
    removed = _defaults_beside([value for value in old if value.place not in now])
    for value in new:
        known = before.get(value.place)
        if value.place in added:
            continue
        if known is None or (known.text, known.content) != (value.text, value.content):
            text = None if known is None else known.text
            found.append(SettingChange(value.path, text, value.text, value.line, value.is_fixed, value.place))
    for value in old:
        if value.place not in now and value.place not in removed:
            found.append(SettingChange(value.path, value.text, None, 0, value.is_fixed, value.place))
    return tuple(found)


def _defaults_beside(values: Sequence[Effective]) -> set[str]:
    """The places of values in blocks that one configuration alone has, that are defaults, and stand beside or below one that
    is written there."""
    written = {value.place.rpartition("/")[0] for value in values if value.line}
    return {
        value.place for value in values if not value.line and not value.is_fixed and _blocks_around(value.place) & written
    }


def _blocks_around(place: str) -> set[str]:
    """The blocks that a setting stands in, the outermost too."""
    steps = place.split("/")[:-1]
    return {"/".join(steps[:count]) for count in range(1, len(steps) + 1)}


def names_of(changes: Sequence[SettingChange]) -> tuple[str, ...]:
    """Return the names of the changed settings, each once, without the numbers of blocks."""
    return tuple(dict.fromkeys(_NUMBER.sub("", change.path) for change in changes))


def _shown(text: str | None) -> str:
    if text is None:
        return "absent"
    text = text if len(text) <= 80 else text[:77] + "..."
    return f'"{text}"'
