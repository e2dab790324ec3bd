"""Which change of the view's settings is allowed. Pure.

Rows stay where they were put. So a new window must divide the old one, and no bucket may go: then whoever reads by the
smallest window and the largest number of buckets that ever were finds all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from mailismus.config.values.units import show_time_ms

PATH = "mta/queue/view"


@attrs.frozen
class ViewSettings:
    """The settings that the history keeps: seconds of a slice, buckets, and of how many outcomes one moves the browse
    start."""

    slice_window_s: int
    bucket_count: int
    pace: int


@attrs.frozen
class ViewRefusal:
    """Why a change is refused: the path of the setting, and a sentence with the old value and the new one."""

    setting: str
    text: str


def refusal_of(old: ViewSettings, new: ViewSettings) -> ViewRefusal | None:
    """Why `new` may not follow `old`; None: it may."""
    was, wanted = (show_time_ms(view.slice_window_s * 1000) for view in (old, new))
    if old.slice_window_s % new.slice_window_s:  # a longer one does not divide it either
        text = f"<slicewindow> was {was} and can't become {wanted}, which does not divide it"
        return ViewRefusal(f"{PATH}/slicewindow", f"{text}: slices of the past would not be found; write {was}")
    if new.bucket_count < old.bucket_count:
        text = f"<bucketcount> was {old.bucket_count} and can't become {new.bucket_count}: the buckets above would be lost"
        return ViewRefusal(f"{PATH}/bucketcount", f"{text}; write {old.bucket_count} or more")
    return None


@attrs.frozen
class ReadingView:
    """The settings by which all rows are found: the smallest window and the most buckets. `longest_window_s`: a
    slice may have rows of so long, and get more: a server that has not heard of new settings writes by earlier ones."""

    slice_window_s: int
    bucket_count: int
    longest_window_s: int


def reading_view(history: Sequence[ViewSettings]) -> ReadingView:
    """How the rows of all these settings are found. `history` is not empty."""
    return ReadingView(
        min(view.slice_window_s for view in history),
        max(view.bucket_count for view in history),
        max(view.slice_window_s for view in history),
    )
