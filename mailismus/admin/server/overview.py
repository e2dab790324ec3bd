"""The answer to `overview`: the figures of the running server at one moment, in one line."""

from __future__ import annotations

import os
from collections.abc import Callable

from mailismus.admin.protocol.overview import encode_overview
from mailismus.admin.protocol.wire import Refusal, Request
from mailismus.observe.overview import Overview
from mailismus.queue.filter import FilterError, parse_subject
from mailismus.queue.gaps import Gaps

NewOverview = Callable[[bytes], Overview]
"""Makes an overview, with all that is known of a domain; empty: of none."""


class OverviewAnswer:
    """One line."""

    def __init__(self, overview: NewOverview, domain: bytes) -> None:
        self.gaps = Gaps()
        self._overview: NewOverview | None = overview
        self._domain = domain

    async def next(self) -> list[bytes] | None:
        overview, self._overview = self._overview, None
        return None if overview is None else [encode_overview(overview(self._domain))]

    def close(self) -> None:
        """It holds nothing open."""


def begin_overview(request: Request, overview: NewOverview) -> OverviewAnswer:
    """The answer to a request. Raises `Refusal`."""
    domain = b""
    try:
        for word in request.words:
            domain = parse_subject(word).domain
    except FilterError as error:
        raise Refusal(os.EX_USAGE, str(error)) from None
    return OverviewAnswer(overview, domain)
