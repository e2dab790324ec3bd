"""A made-up queue provider without a spool, for tests of what the program asks of any provider."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import NoReturn, TextIO

from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.mail.ids import SpoolId
from mailismus.queue.fsck.finding import Checked, Finding
from mailismus.queue.interface import Area, AreaCount, Filter, Gap, Message, Summary
from mailismus.queue.provider import ConversionEnd, IProvider, IsLocal, QueuePlace
from mailismus.queue.reactor import QueueReactor


class StoppedNovelty:
    """An empty queue."""

    gaps: tuple[Gap, ...] = ()

    def summary(self) -> Summary:
        return Summary(dict.fromkeys(Area, AreaCount()), True)

    def pages(self, wanted: Filter) -> Iterator[Sequence[Message]]:
        return iter(())

    def contents(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        yield b""

    def servers(self) -> None:
        return None

    def close(self) -> None:
        pass


class NoveltyReport:
    """Counts in words of its own."""

    checked = (Checked("boxes", 1, "box", "boxes"), Checked("oxen", 2, "ox", "oxen"))

    def __iter__(self) -> Iterator[Finding]:
        return iter(())


class Novelty:
    """An `IProvider`."""

    name = "novelty"
    formats = (2, 3)
    has_spool = False
    is_in_files = True

    def lacks(self) -> str:
        return ""

    def claims(self, queue_path: str) -> bool:
        return False

    def load(self) -> None:
        pass

    def open(self, settings: QueueSettings, reactor: QueueReactor, clock: IReactorTime, is_local: IsLocal) -> NoReturn:
        raise AssertionError("it can't be opened")

    def set_up(self, settings: QueueSettings) -> tuple[str, ...]:
        return ()

    def open_stopped(self, place: QueuePlace) -> StoppedNovelty:
        assert place.spool_path is None
        return StoppedNovelty()

    def open_writer(self, settings: QueueSettings) -> None:
        return None

    def new_counter(self) -> NoReturn:
        raise AssertionError("it has no plans")

    def check(self, settings: QueueSettings, now: float) -> NoveltyReport:
        return NoveltyReport()

    def check_copy(self, place: QueuePlace, now: float) -> NoveltyReport:
        return NoveltyReport()

    def repair(self, settings: QueueSettings, now: float) -> NoveltyReport:
        return NoveltyReport()

    def open_source(self, place: QueuePlace, disk: IDisk) -> NoReturn:
        raise AssertionError("it is no source")

    def new_builder(self, settings: QueueSettings, disk: IDisk, epoch: int, now: float) -> NoReturn:
        raise AssertionError("it can't be built")

    def end_conversion(self, settings: QueueSettings, end: ConversionEnd, *, is_source: bool) -> None:
        pass

    def dump(self, path: str, out: TextIO) -> None:
        out.write("a novelty\n")

    def dump_stored(self, place: QueuePlace, name: str, out: TextIO) -> NoReturn:
        raise AssertionError("it has files alone")


PROVIDER: IProvider = Novelty()
