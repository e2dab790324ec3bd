"""The name server, one process: `python -m benchmarks.scheduler.names LOG ZONE PORT`.

It plays a zone as `tests.fakes.dnsserver` does, and writes a line for each question (`events`). It says `ready`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import BinaryIO

from tests.fakes.dnsserver import FakeNameServer, FakeReactor, Query

FLUSH_S = 0.1


class NameServer(FakeNameServer):
    """A fake name server with a log."""

    def __init__(self, reactor: FakeReactor, zone_text: str, port: int, log: BinaryIO) -> None:
        self._log = log
        super().__init__(reactor, zone_text, port)
        self._flush()

    def note(self, query: Query, transport: str) -> tuple[str, str]:
        """Write a question down."""
        name, kind = super().note(query, transport)
        self._log.write(f"{time.monotonic():.6f} {name.lower()} {kind}\n".encode("ascii", "replace"))
        return name, kind

    def _flush(self) -> None:
        self._log.flush()
        self.reactor.callLater(FLUSH_S, self._flush)


def main(log_path: str, zone_path: str, port: str) -> None:
    """Serve until stopped."""
    from twisted.internet import reactor

    with open(log_path, "ab", buffering=1 << 20) as log:
        NameServer(reactor, Path(zone_path).read_text(), int(port), log)  # type: ignore[arg-type]  # it has them all
        print("ready", flush=True)
        reactor.run()


if __name__ == "__main__":
    main(*sys.argv[1:4])
