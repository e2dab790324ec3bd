"""The servers that a comparison sets side by side: the working tree, another revision of it, another server."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable
from pathlib import Path

import attrs

from benchmarks.stage.directories import Stage
from benchmarks.stage.providers import CLUSTERED, ServedProvider
from benchmarks.stage.servers import TREE, Extras, Other, Ours, Server
from tests.support.processes import TrialError

LASTING = Extras(queue="<journal><maxage>1h</maxage></journal>")
"""Nothing is moved from the journal to files because of its age: what is counted must not depend on how slow the tool is."""


@attrs.frozen
class Contender:
    """One of them: a tree of this repository, or else the command line of another server."""

    name: str
    tree: Path = TREE
    command: str = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give a program the options `--previous`, `--other` and `--directory`."""
    parser.add_argument("--previous", metavar="REVISION", help="count another revision of this repository too")
    parser.add_argument(
        "--other", metavar="COMMAND", help="count another server too: its command, with {port} {relay} {queue} {directory}"
    )
    add_directory(parser)


def add_directory(parser: argparse.ArgumentParser) -> None:
    """Give a program the option `--directory`."""
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queues lie (default: /var/tmp)")


def contenders(at: Stage, previous: str | None, other: str | None) -> list[Contender]:
    """Ours first, then the others asked for. Raises: TrialError for a revision that is not there."""
    found = [Contender("ours")]
    if previous:
        found.append(Contender("previous", check_out(previous, at.root)))
    if other:
        found.append(Contender("other", command=other))
    return found


def check_out(revision: str, directory: Path) -> Path:
    """The tree of another revision, unpacked below `directory`. Raises: TrialError."""
    target = directory / "previous"
    target.mkdir()
    packed = subprocess.run(
        ["git", "-C", str(TREE), "archive", "--format=tar", revision], capture_output=True, timeout=60, check=False
    )
    if packed.returncode:
        raise TrialError(f"git archive {revision}: {packed.stderr.decode('utf-8', 'replace').strip()}")
    subprocess.run(["tar", "-x", "-C", str(target)], input=packed.stdout, timeout=60, check=True)
    return target


def extras_of(provider: ServedProvider) -> Extras:
    """The configuration in which calls of all kinds are counted."""
    return LASTING if provider.name == CLUSTERED.name else Extras()


def maker(contender: Contender, provider: ServedProvider) -> Callable[[], Server]:
    """A contender's server, to be counted."""
    if contender.command:
        return lambda: Other(contender.command, contender.name)
    return lambda: Ours(contender.name, contender.tree, extras_of(provider), provider)
