"""The name of this provider and the format of its directories, as the mark of a queue says them (`docs/formats/mark.md`)."""

from __future__ import annotations

from mailismus.queue.files.ownership import Ownership

NAME = "log"
FORMATS = (1, 2)
"""What this version reads. 2: with the areas of acts."""
LOG = "log"
"""The directory of the segments, in the queue's."""
OWNERSHIP = Ownership(NAME, FORMATS, (LOG,))
"""What its directories are recognised by."""
