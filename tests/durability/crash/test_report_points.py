"""The explorer finds a report and its bounces that are not one commit. (Their crash points: the operations "report ...".)"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Settlement, Submission
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.durability.crash.explorer import Explorer
from tests.durability.crash.knowledge import Broken
from tests.durability.crash.workloads import QUICK


@pytest.mark.parametrize("is_report_first", [True, False])
def test_two_commits_in_place_of_one_are_found(monkeypatch: pytest.MonkeyPatch, is_report_first: bool) -> None:
    whole = ClusteredQueue.commit

    def in_two(
        queue: ClusteredQueue, submissions: Sequence[Submission], settlements: Sequence[Settlement]
    ) -> Deferred[Sequence[SpoolId]]:
        if not submissions or not settlements:
            return whole(queue, submissions, settlements)
        if is_report_first:
            return whole(queue, submissions, ()).addCallback(lambda _: whole(queue, (), settlements))
        return whole(queue, (), settlements).addCallback(lambda _: whole(queue, submissions, ()))

    monkeypatch.setattr(ClusteredQueue, "commit", in_two)
    with pytest.raises(Broken, match="I7: of the bounce"):
        Explorer().explore(("store three", "report"), QUICK)
