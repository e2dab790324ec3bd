"""Summary: number of findings by severity, and the exit status that follows."""

from __future__ import annotations

import os
from collections import Counter

from mailismus.queue.fsck.finding import Done, Finding, Severity


class FsckSummary:
    """Sums of one check or repair."""

    def __init__(self) -> None:
        self.counts: Counter[Severity] = Counter()
        self._has_failed = False

    def add(self, finding: Finding) -> None:
        """Count one more."""
        self.counts[finding.severity] += 1
        if finding.done is Done.FAILED:
            self._has_failed = True

    def status(self, *, is_repair: bool) -> int:
        """The exit status: 65 if a repair is needed, mail was lost, or a repair failed; else 0."""
        if is_repair:
            is_bad = self._has_failed or self.counts[Severity.LOST] > 0
        else:
            is_bad = any(self.counts[severity] for severity in Severity if severity.needs_repair)
        return os.EX_DATAERR if is_bad else os.EX_OK
