"""The name of this provider and the format of its directories, as the mark of a queue says them (`docs/formats/mark.md`).

The number rises when an older program must not touch the queue any more, whatever file the change is in.
"""

from __future__ import annotations

from mailismus.queue.files.mark import Mark

NAME = "clustered"
FORMATS = (1,)
"""What this version reads."""
MARK = Mark(NAME, FORMATS[-1])
"""What a start writes."""
