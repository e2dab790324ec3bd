"""Line ends of a session on standard input: those of its first line (pure).

*Rules*: programs on this machine may end lines with LF alone; then each LF is a line end, and becomes the CR LF of SMTP, one
for one. So what is content for the program is content here: it ends at LF . LF and nowhere else, and a CR is a bare one,
for which the message is refused. In a session whose first line ends with CR LF nothing is changed, and a bare LF ends
nothing. No session has both kinds: what one of them takes for a line could be the end of a message for the other.
"""

from __future__ import annotations

from mailismus.smtp.server.limits import MAX_LINE


class LineEnds:
    """The bytes of one session, for an engine of SMTP."""

    def __init__(self) -> None:
        self._held = b""
        self._is_known = self._are_bare = False

    @property
    def has_half_a_line(self) -> bool:
        """Whether the first line has begun, and not ended."""
        return bool(self._held)

    def convert(self, data: bytes) -> bytes:
        """Return the next bytes for the engine; none while the end of the first line is not there."""
        if not self._is_known:
            data, self._held = self._held + data, b""
            end = data.find(b"\n")
            if end < 0 and len(data) <= MAX_LINE + 1:
                self._held = data
                return b""
            self._is_known, self._are_bare = True, end >= 0 and data[:end][-1:] != b"\r"
        return data.replace(b"\n", b"\r\n") if self._are_bare else data
