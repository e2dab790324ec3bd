"""The name of this provider and the format of its directories, as the mark of a queue says them (`docs/formats/mark.md`).

The number rises when an older program must not touch the queue any more, whatever file the change is in.
"""

from __future__ import annotations

from mailismus.queue.files.ownership import Ownership
from mailismus.queue.interface import Area

NAME = "clustered"
FORMATS = (1, 2)
"""What this version reads. 2: with the areas of acts."""
AREAS_OF_FORMAT_1 = (Area.INCOMING, Area.DEFERRED, Area.BOUNCES)
OWNERSHIP = Ownership(NAME, FORMATS, ("journal", *(area.value for area in Area)))
"""What its directories are recognised by."""
