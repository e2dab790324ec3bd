"""The queues to choose among: each provider with the settings that make a difference."""

from __future__ import annotations

from functools import partial

import attrs

from benchmarks.measure.disk_calls import Counted
from benchmarks.stage.providers import CHUNK, CLUSTERED, LOG, ServedProvider
from benchmarks.stage.servers import Extras, Ours


@attrs.frozen
class Variant:
    """One of them. `queue`, `spool`: elements of its configuration."""

    name: str
    text: str
    provider: ServedProvider
    queue: str = ""
    spool: str = ""

    def extras(self, queue: str = "") -> Extras:
        """Its elements, and more of `<queue>`."""
        return Extras(queue=queue + self.queue, spool=self.spool)

    def counted(self, queue: str = "") -> Ours:
        """A server that counts its barriers."""
        return Counted(extras=self.extras(queue), provider=self.provider)

    def maker(self, queue: str = "") -> partial[Ours]:
        """Makes such servers."""
        return partial(self.counted, queue)


_FILES = "<journal><maxage>0</maxage><largemsgsize>0</largemsgsize></journal>"

VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("clustered", "clustered, references counted in a cache", CLUSTERED),
        Variant("clustered-links", "clustered, hard links", CLUSTERED, spool="<hardlinks>Y</hardlinks>"),
        Variant("clustered-files", "clustered, each message a file at once", CLUSTERED, _FILES),
        Variant("log", "log", LOG),
        Variant("log-spool", "log, all contents in the spool", LOG, "<journal><largemsgsize>0</largemsgsize></journal>"),
        Variant("chunk", "files of its own for each message", CHUNK),
    )
}
