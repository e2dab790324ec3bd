"""Names of partitions and shares for people: `AREA/SLICE/BUCKET` and `AREA/SLICE/BUCKET/ID`. Pure.

Listings, findings and dumps say them; a dump takes them.
"""

from __future__ import annotations

import re
from uuid import UUID

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.format.share import ShareName, SharePlace

_AREAS = "|".join(area.value for area in Area)
_NAME = re.compile(rf"({_AREAS})/([0-9]{{1,12}})/([0-9]{{1,9}})(?:/([0-9a-f-]{{32,36}}))?")


def place_name(place: SharePlace) -> str:
    """The name of a partition."""
    return f"{place.queue_name}/{place.slice_start:.0f}/{place.bucket}"


def share_name(name: ShareName) -> str:
    """The name of a share."""
    return f"{place_name(name.place)}/{name.enqueue_id}"


def parse_name(text: str) -> ShareName | SharePlace | None:
    """What a name says; None: it is none."""
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    place = SharePlace(found[1], float(found[2]), int(found[3]))
    if found[4] is None:
        return place
    try:
        return ShareName(place, UUID(found[4]))
    except ValueError:
        return None
