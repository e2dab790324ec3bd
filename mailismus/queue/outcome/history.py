"""What the history of an entry (`mail.attempts`) says of an outcome (pure).

An entry that fails for good at its first attempt gets no history: its reply and host say the same.
"""

from __future__ import annotations

from mailismus.mail.attempts import BOUNCED, DEFERRED, EXPIRED, PastAttempt, with_attempt
from mailismus.mail.outcome import Outcome
from mailismus.queue.interface import Entry
from mailismus.queue.outcome.disposition import Disposition

_DECIDED = {Disposition.DEFERRED: DEFERRED, Disposition.BOUNCED: BOUNCED, Disposition.EXPIRED: EXPIRED}
_LONGEST_WAIT_S = 999_999_999
_LATEST = 99_999_999_999
"""What the word holds, and any calendar too."""


def with_outcome(entry: Entry, outcome: Outcome, disposition: Disposition, now: float, wait_s: float = 0.0) -> bytes:
    """Return the entry's words with this failed attempt. `now`: UTC seconds. `wait_s`: until the next attempt."""
    attempt = PastAttempt(
        number=entry.attempts + 1,
        at=min(max(0, int(now)), _LATEST),
        decided=_DECIDED[disposition],
        wait_s=min(max(0, round(wait_s)), _LONGEST_WAIT_S),
        tls=outcome.tls,
        host=outcome.host,
        code=outcome.reply.code,
        enhanced=outcome.reply.enhanced,
        text=outcome.reply.text,
    )
    return with_attempt(entry.words, attempt) or b""
