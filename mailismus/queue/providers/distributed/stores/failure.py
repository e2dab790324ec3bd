"""How a call of a store fails. There are two ways, and the difference decides what the caller may do.

- `NotDone`: the store refused, or was never reached. Nothing was changed, and nothing will be by this call.
- `Unanswered`: the call was sent and its result is not known. It may be done already, may be done later, at any time, or
  never. To repeat the same call is harmless; to do something else in its place is not.

Calls that only read fail with `NotDone`. Where a store has answered that the queue which was named is not there it is
`QueueMissing`: the store itself is well.
"""

from __future__ import annotations

import attrs

from mailismus.errors import StorageError

REASON_LENGTH = 500


@attrs.frozen
class StoreFailure(StorageError):
    """Base of both: the name of the store, and what happened. `is_full`: it has no room for what is written."""

    store: str
    text: str
    is_full: bool = False

    def __str__(self) -> str:
        return f"{self.store}: {self.text}"


@attrs.frozen
class NotDone(StoreFailure):
    """Nothing was changed by this call, nor will be."""


@attrs.frozen
class QueueMissing(NotDone):
    """The store has answered: the queue is not there."""


@attrs.frozen
class Unanswered(StoreFailure):
    """Whether it was done, or will be, is not known."""

    def __str__(self) -> str:
        return f"{self.store}: {self.text}: not known whether it was done"


def reason_of(error: BaseException) -> str:
    """An error of a library in words, on one line and not too long: some have none but their name."""
    return " ".join((str(error) or type(error).__name__).split())[:REASON_LENGTH]
