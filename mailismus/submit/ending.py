"""Endings: why a client is rejected or its session is ended by us, with the last reply and the log line.

    NOQUEUE: reject: CONNECT from unknown[192.0.2.1]: 421 4.3.2 Too many connections, try again later; proto=SMTP
    timeout after RCPT from unknown[192.0.2.1] (37 times)

*Rules*: the words are those of Postfix, which log analysers know. Of each kind there is at most one line per second: the
first ending at once, then the last one of each second with the number of endings since the previous line.

*Not here*: which clients are rejected (`submit.admission`), time-outs (`submit.protocol`), refusals of mail
(`submit.reception`).
"""

from __future__ import annotations

import enum

from mailismus.observe.maillog import MailLog
from mailismus.smtp import replies

_REJECTED = b"NOQUEUE: reject: CONNECT from %(client)b: %(reply)b; proto=SMTP"


class Ending(enum.Enum):
    """The reasons, each with our last reply (empty: none can be sent) and its log line."""

    FULL = (replies.TOO_MANY_CONNECTIONS, _REJECTED)
    PEER_FULL = (replies.TOO_MANY_OF_PEER, _REJECTED)
    NO_DESCRIPTORS = (replies.NO_RESOURCES, _REJECTED)
    EARLY = (replies.TOO_EARLY, _REJECTED)
    TIMED_OUT = (replies.TIMED_OUT, b"timeout after %(about)b from %(client)b")
    TOO_SLOW = (replies.TOO_SLOW, b"data too slow after %(about)b from %(client)b")
    TOO_LONG = (replies.TOO_LONG, b"data for too long after %(about)b from %(client)b")
    NOT_READING = (b"", b"replies not read after %(about)b from %(client)b")
    TOO_MANY_ERRORS = (replies.TOO_MANY_ERRORS, b"too many errors after %(about)b from %(client)b")
    NO_TLS = (b"", b"TLS handshake failed: client=%(client)b: %(about)b")

    def __init__(self, reply: bytes, line: bytes) -> None:
        self.reply, self.line = reply, line


class Endings:
    """Counts and logs the endings of one listener.

    Call `tick` regularly, `ticks_per_line` times per second. `count`: number of each ending, for metrics.
    """

    def __init__(self, maillog: MailLog, ticks_per_line: int) -> None:
        self._maillog = maillog
        self.ticks_per_line = ticks_per_line
        self._tick = 0
        self._lines: dict[Ending, _Line] = {}
        self.count = dict.fromkeys(Ending, 0)

    def note(self, ending: Ending, host: str, about: bytes) -> None:
        """Note an ending of a client's session. `about`: the last command, or another detail for the log line."""
        self.count[ending] += 1
        line = self._lines.get(ending)
        if line is None:
            self._lines[ending] = _Line(self._tick)
            self._write(ending, host, about, 1)
        else:
            line.held += 1
            line.host, line.about = host, about

    def tick(self) -> None:
        """Write the lines that were held back and are due."""
        self._tick += 1
        for ending, line in tuple(self._lines.items()):
            if self._tick - line.written_at < self.ticks_per_line:
                continue
            if line.held:
                self._write(ending, line.host, line.about, line.held)
                line.held, line.written_at = 0, self._tick
            else:
                del self._lines[ending]

    def _write(self, ending: Ending, host: str, about: bytes, times: int) -> None:
        client = b"unknown[%b]" % host.encode("ascii", "replace")
        line = ending.line % {b"client": client, b"about": about, b"reply": ending.reply[:-2]}
        self._maillog.write(b"%b (%d times)" % (line, times) if times > 1 else line)


class _Line:
    """Endings since the last line that was written."""

    __slots__ = ("about", "held", "host", "written_at")

    def __init__(self, written_at: int) -> None:
        self.written_at, self.held = written_at, 0
        self.host, self.about = "", b""
