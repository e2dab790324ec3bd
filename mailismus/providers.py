"""The queue providers of this program: one table of names and modules, and the provider of a directory.

*Rules*: a provider's module is imported when its provider is asked for; it defines an `IProvider` named `PROVIDER`. No other
code of the program names a provider's module or class.

*For tests and harnesses*: `Providers.extended` returns another table. `app.build`, `__main__.main` and
`run.make_service` take it as `providers=`; their defaults are `PROVIDERS`, so nothing outside of the program's own code (no
environment variable, no file, no entry point) can add a provider to a server.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from typing import cast

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import Corrupt, StartError
from mailismus.queue.files.conversion import refuse_between
from mailismus.queue.files.mark import ADVICE, Mark, conversion_advice, read_mark, refuse_format, refuse_other
from mailismus.queue.provider import IProvider

_PARENTS = 3
"""Directories between a file of a queue and the mark: the queue's own, an area's, a slot's."""


class Providers:
    """Providers by name (`IProviders`)."""

    def __init__(self, modules: Mapping[str, str], disk: IDisk | None = None) -> None:
        """`modules`: the full name of each provider's module. The first provider is asked first."""
        self._modules = dict(modules)
        self._disk = disk or PosixDisk(Access.READ_ONLY)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of the table."""
        return tuple(self._modules)

    def extended(self, **modules: str) -> Providers:
        """Return a table that has these modules too."""
        return Providers({**self._modules, **modules}, self._disk)

    def named(self, name: str) -> IProvider:
        return cast(IProvider, importlib.import_module(self._modules[name]).PROVIDER)

    def configured(self, settings: QueueSettings) -> IProvider:
        provider = self.named(settings.provider)
        path = settings.rootpath
        refuse_between(self._disk, path)
        try:
            mark = read_mark(self._disk, path)
        except (Corrupt, OSError):
            mark = None  # the provider's start refuses it; its check reports it, and its repair writes it again
        if mark is None and (claimant := self._claimant(path)) is not None:
            mark = Mark(claimant.name, claimant.formats[0])
        if mark is not None:
            advice = self._advice(mark, provider) if mark.name != provider.name else ADVICE
            refuse_other(mark, provider.name, provider.formats, path, advice)
        return provider

    def found_in(self, queue_path: str) -> IProvider:
        refuse_between(self._disk, queue_path)
        try:
            mark = read_mark(self._disk, queue_path)
        except (Corrupt, OSError) as error:
            claimant = self._claimant(queue_path)
            if claimant is not None:
                return claimant
            if isinstance(error, Corrupt):
                raise StartError(os.EX_DATAERR, f"{error.path}: {error.text}") from error
            raise
        if mark is None:
            claimant = self._claimant(queue_path)
            if claimant is None:
                raise FileNotFoundError(2, "no queue is here", queue_path)
            return claimant
        if mark.name not in self._modules:
            text = f"{queue_path} holds a queue of provider {mark.name}, which this Mailismus does not have"
            raise StartError(os.EX_DATAERR, f"{text}: use the one that wrote it")
        provider = self.named(mark.name)
        refuse_format(mark, provider.formats, queue_path)
        return provider

    def of_file(self, path: str) -> IProvider:
        for directory in _parents(os.path.abspath(path)):
            try:
                mark = read_mark(self._disk, directory)
            except (OSError, Corrupt):
                continue
            if mark is not None and mark.name in self._modules:
                return self.named(mark.name)
        return self.named(self.names[0])

    def _advice(self, mark: Mark, wanted: IProvider) -> str:
        """What an administrator can do where a queue with this mark is configured as another provider's."""
        if mark.name not in self._modules:
            return "write another <rootpath>, or start the Mailismus that wrote it"
        found = self.named(mark.name)
        if mark.format not in found.formats:
            return ADVICE
        if not found.is_in_files:
            return f"{ADVICE}; with that written it can be converted: mailismus queue convert --to {wanted.name}"
        return conversion_advice(wanted.name)

    def _claimant(self, queue_path: str) -> IProvider | None:
        """Return the provider that claims a directory without a mark. No provider claims an empty one."""
        if not self._disk.exists(queue_path):
            return None
        providers = map(self.named, self._modules)
        return next((provider for provider in providers if provider.claims(queue_path)), None)


def _parents(path: str) -> Iterator[str]:
    for _ in range(_PARENTS):
        path = os.path.dirname(path)
        yield path


PROVIDERS = Providers(
    {
        "clustered": "mailismus.queue.providers.clustered.entry",
        "log": "mailismus.queue.providers.log.entry",
        "chunk": "mailismus.queue.providers.chunk.entry",
        "distributed": "mailismus.queue.providers.distributed.entry",
    }
)
"""The providers that can be configured, the default one first."""
