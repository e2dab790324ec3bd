"""A scripted LMTP server: a `sink.Sink` that says LHLO, and has a reply for each recipient behind the final dot (RFC 2033).

`outcomes` has the replies of mailboxes that are not well. In a script `LHLO` is a step, and `dot` stands for all the
replies.
"""

from __future__ import annotations

from tests.fakes.sink import Action, Script, Sink, SinkFactory

OFFERS = b"250-store\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES\r\n"
STORED = b"250 2.0.0 stored\r\n"


class LmtpSink(Sink):
    """One connection."""

    sinks: LmtpSinkFactory

    def do(self, step: str, normally: bytes) -> Action:
        if step == "EHLO" or step == "HELO":
            return super().do(step, b"500 5.5.1 this is LMTP\r\n")
        if step == "LHLO":
            return super().do(step, OFFERS)
        if step == "dot":
            for recipient in self._accepted:
                if self.sinks.outcomes.get(recipient, STORED)[:1] == b"2":
                    self.sinks.stored.append(recipient)
            return super().do(step, b"".join([self.sinks.outcomes.get(one, STORED) for one in self._accepted]))
        return super().do(step, normally)


class LmtpSinkFactory(SinkFactory):
    """All connections."""

    def __init__(self, script: Script | None = None) -> None:
        super().__init__(script)
        self.outcomes: dict[bytes, bytes] = {}
        self.stored: list[bytes] = []
        """Recipients whose message it keeps, in order, whether it told the client or not."""

    def buildProtocol(self, addr: object) -> LmtpSink:
        connection = LmtpSink(self)
        self.connections.append(connection)
        return connection
