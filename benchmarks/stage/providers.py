"""The queue provider of a server under test: its configuration, its programs, and what its files are called.

A provider that no server may be configured with has programs of its own, which put it into the table of providers
(`mailismus.providers`).
"""

from __future__ import annotations

import argparse

import attrs


@attrs.frozen
class ServedProvider:
    """A provider."""

    name: str
    twistd: tuple[str, ...]
    """What the interpreter is given to run as `twistd`."""
    command: tuple[str, ...]
    """The same for `mailismus`."""
    leftovers: tuple[str, ...]
    """Endings of the names of files that are gone with the last entry."""
    made: tuple[str, ...]
    """Endings of the names under which it makes files."""
    module: str = ""
    """For the table of providers, where that does not have it."""
    has_spool: bool = False
    hurried: str = ""
    """Elements of `<queue>` with which its upkeep comes ten times as often."""

    def element(self, queue: str, spool_more: str, queue_more: str) -> str:
        """The element `<queue>` for a queue in this directory."""
        spool = f"<spool><rootpath>{queue}/spool</rootpath>{spool_more}</spool>" if self.has_spool else ""
        return f'<queue provider="{self.name}"><rootpath>{queue}/queue</rootpath>{spool}{queue_more}</queue>'


CLUSTERED = ServedProvider(
    "clustered",
    twistd=("-c", "from twisted.scripts.twistd import run; run()"),
    command=("-m", "mailismus"),
    leftovers=(".msg", ".mqc"),
    made=(".msg", ".mqc", ".mqj"),
    has_spool=True,
    hurried="<journal><maxage>300ms</maxage></journal>",
)
NAIVE = ServedProvider(
    "naive",
    twistd=("-m", "tests.naive.program", "twistd"),
    command=("-m", "tests.naive.program", "mailismus"),
    leftovers=(".mail", ".tmp"),
    made=(".tmp",),
    module="tests.naive.entry",
)
LOG = ServedProvider(
    "log",
    twistd=CLUSTERED.twistd,
    command=CLUSTERED.command,
    leftovers=(".msg",),
    made=(".msg", ".mqj"),
    has_spool=True,
)
CHUNK = ServedProvider(
    "chunk",
    twistd=CLUSTERED.twistd,
    command=CLUSTERED.command,
    leftovers=("/todo/*", "/mess/*/*", "/info/*/*"),
    made=("",),
)
DISTRIBUTED = ServedProvider("distributed", twistd=CLUSTERED.twistd, command=CLUSTERED.command, leftovers=(), made=())
"""Needs services; no option names it."""
SERVED = {provider.name: provider for provider in (CLUSTERED, LOG, CHUNK, NAIVE)}


def add_option(parser: argparse.ArgumentParser, *more: ServedProvider) -> None:
    """Give a harness or benchmark the option `--provider`; its value is a name in `SERVED`, or of one more."""
    text = "whose queue (default: %(default)s; naive: one that loses mail, to show that this is seen)"
    parser.add_argument("--provider", choices=[*SERVED, *(one.name for one in more)], default=CLUSTERED.name, help=text)


def chosen(options: argparse.Namespace) -> ServedProvider:
    """The provider that the option names."""
    return {**SERVED, DISTRIBUTED.name: DISTRIBUTED}[options.provider]


def links(options: argparse.Namespace) -> str:
    """What `<spool>` says by the option `--hardlinks`: nothing for the default, which not every provider has."""
    return "<hardlinks>Y</hardlinks>" if options.hardlinks == "Y" else ""
