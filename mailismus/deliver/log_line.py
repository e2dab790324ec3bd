"""The log line of one recipient's attempt, with the usual field names of mail logs (pure).

    SPID: to=<c@d>, relay=host[ip]:port, delay=1.1, delays=0.02/0/0.5/0.6, dsn=2.0.0, status=sent (250 2.0.0 Ok)

Behind delays stands tls=LEVEL where TLS was used as the level demands, and tls=!LEVEL where it was missed; neither with
relay=none, which had no connection. Behind tls stands sasl=MECHANISM/USER where the relay has accepted credentials.
delays: before the queue manager, waiting for a connection, connection set-up, transmission. Seconds with at most two
significant digits: 0.02, 1.1, 35.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from mailismus.mail.ids import SpoolId, spool_name
from mailismus.mail.outcome import Outcome
from mailismus.observe.text import is_plain, plain
from mailismus.queue.outcome.disposition import Disposition

_LINE = b"%b: to=<%b>, relay=%b, delay=%b, delays=%b, dsn=%b, status=%b (%b)"
_STATUS = {disposition: disposition.value.encode("ascii") for disposition in Disposition}
_HUNDREDTHS = [b"%g" % (number / 100) for number in range(101)]
_TENTHS = [b"%g" % (number / 10) for number in range(101)]


@attrs.frozen
class LogFields:
    """What a line has behind `delays=`."""

    tls: bytes = b""
    """The level of TLS that was met (`!`: missed); empty: none."""
    text: bytes = b""
    """All of it, a comma before each field."""

    @classmethod
    def of_tls(cls, level: bytes) -> LogFields:
        """The level alone."""
        return cls(level, b", tls=" + level)

    def plus(self, text: bytes) -> LogFields:
        """With another field behind these."""
        return LogFields(self.tls, self.text + text)


NO_FIELDS = LogFields()


def compact(seconds: float) -> bytes:
    """Seconds as logged; a negative number (the clock was set) is 0."""
    if seconds < 0.995:
        return _HUNDREDTHS[int(seconds * 100 + 0.5)] if seconds > 0 else b"0"
    if seconds < 9.95:
        return _TENTHS[int(seconds * 10 + 0.5)]
    return b"%d" % (seconds + 0.5)


def format_delays(before_s: float, waiting_s: float, setup_s: float, sending_s: float) -> bytes:
    """The four delays, equal for all recipients of one transaction."""
    return b"%b/%b/%b/%b" % (compact(before_s), compact(waiting_s), compact(setup_s), compact(sending_s))


def format_lines(
    spool_id: SpoolId,
    recipients: Sequence[bytes],
    outcome: Outcome,
    delay_s: float,
    delays: bytes,
    dispositions: Sequence[Disposition],
) -> list[bytes]:
    """One line for each recipient of an outcome, without control bytes. `delays`: with what stands behind them."""
    reply = outcome.reply
    dsn = reply.enhanced or b"%d.0.0" % (reply.code // 100)
    name, first = spool_name(spool_id), dispositions[0]
    if len(recipients) == 1:
        delay, text = compact(delay_s), bytes(reply)
        return [_LINE % (name, plain(recipients[0]), outcome.host, delay, delays, dsn, _STATUS[first], text)]
    head = name + b": to=<"
    middle = b">, relay=%b, delay=%b, delays=%b, dsn=%b, status=" % (outcome.host, compact(delay_s), delays, dsn)
    end = b" (%b)" % bytes(reply)
    if not is_plain(b"".join(recipients)):
        recipients = [plain(recipient) for recipient in recipients]
    if dispositions.count(first) == len(recipients):
        rest = middle + _STATUS[first] + end
        return [head + recipient + rest for recipient in recipients]
    return [
        head + recipient + middle + _STATUS[disposition] + end
        for recipient, disposition in zip(recipients, dispositions, strict=True)
    ]
