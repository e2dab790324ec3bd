"""The command `mailismus queue convert`: moves a stopped queue to another provider, forgets the old one, or gives up a
conversion from or to services.

Exit codes: 0; 64 for an unknown provider; those of `queue.convert.conversion.convert`.

*Not here*: the conversion (`queue.convert`).
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from mailismus.admin.commands.progress import ProgressLine
from mailismus.config.values.settings import QueueSettings
from mailismus.errors import StartError
from mailismus.queue.provider import IProvider, IProviders

if TYPE_CHECKING:
    from mailismus.queue.convert.conversion import Converted


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--to", metavar="PROVIDER", help="the provider to convert to, as in <queue provider>")
    what.add_argument("--forget-old", action="store_true", help="remove the old queue that the last conversion kept")
    what.add_argument(
        "--give-up",
        action="store_true",
        help="let servers into a shared queue again whose conversion was stopped and is not to be finished",
    )


def run(
    arguments: argparse.Namespace,
    settings: QueueSettings,
    providers: IProviders,
    find_foreign: Callable[[str], Sequence[str]],
    out: TextIO,
) -> int:
    """Convert the queue of these settings, forget the old one, or give up. Return the exit code. Raises `StartError`,
    `OSError`. `find_foreign`: paths of the settings of the file that a provider does not have."""
    from mailismus.disk.posix import PosixDisk  # here: other commands convert nothing
    from mailismus.queue.convert.conversion import convert, tools_of
    from mailismus.queue.convert.forgetting import forget_old
    from mailismus.queue.files.conversion import refuse_between
    from mailismus.queue.provider import ConversionEnd

    disk = PosixDisk()
    if arguments.forget_old:

        def forget(source: str) -> None:
            providers.named(source).end_conversion(settings, ConversionEnd.FORGOTTEN, is_source=True)

        before = forget_old(disk, settings.rootpath, forget)
        out.write(f"The old queue of provider {before.source} is removed; this one is of provider {before.target}.\n")
        return os.EX_OK
    if arguments.give_up:
        refuse_between(disk, settings.rootpath)
        for is_source in (True, False):
            providers.named(settings.provider).end_conversion(settings, ConversionEnd.GIVEN_UP, is_source=is_source)
        out.write("No conversion is at this queue.\n")
        return os.EX_OK
    target = _target(arguments.to, providers)
    progress = ProgressLine(sys.stderr)
    try:
        done = convert(settings, target, tools_of(providers, disk, time.time, progress.show))
    finally:
        progress.end()
    program = "mailismus" if arguments.config is None else f"mailismus --config {shlex.quote(arguments.config)}"
    foreign = None if settings.provider == done.conversion.target else find_foreign(done.conversion.target)
    is_left_there = settings.services is not None and settings.provider == done.conversion.source
    print_converted(done, foreign, program, out, is_left_there=is_left_there)
    return os.EX_OK


def _target(name: str, providers: IProviders) -> IProvider:
    try:
        return providers.named(name)
    except LookupError:
        known = ", ".join(providers.names)
        raise StartError(os.EX_USAGE, f"there is no provider {name}; --to takes one of: {known}") from None


def print_converted(
    done: Converted, foreign: Sequence[str] | None, program: str, out: TextIO, *, is_left_there: bool
) -> None:
    """`foreign`: settings to be unset; None: the file names the new provider. `program`: how the next commands begin.
    `is_left_there`: the old queue lies in services, which the configuration names that is to be changed."""
    conversion, copied = done.conversion, done.copied
    way = f"from {conversion.source} to {conversion.target}"
    if copied is None:
        out.write(f"The conversion {way} that was stopped while directories changed places is finished.\n")
    else:
        sums = f"{copied.entries:,} entries, {copied.messages:,} messages, {copied.stored_bytes:,} bytes"
        out.write(f"Converted {way} and compared: {sums}.\n")
    target = conversion.target
    if foreign is not None:
        without = f" --unset {shlex.join(foreign)}" if foreign else ""
        out.write(f"Before the next start: {program} config set mta/queue provider={target}{without}\n")
    if is_left_there:
        out.write(
            "The old queue stays in its services, where no server is let in. To remove it, keep a copy of this"
            " configuration: mailismus --config COPY queue convert --forget-old\n"
        )
        return
    out.write(f"The old queue is kept in {done.old_path}; to remove it: {program} queue convert --forget-old\n")
