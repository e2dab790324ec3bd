"""The command `mailismus fsck`: checks or repairs a stopped queue, and prints each finding as it comes.

Exit codes: 0 without findings, or with findings that the next start repairs (after a repair: without others left); 65 if a
repair is needed, mail was lost, or a repair failed (`queue.fsck.summary`); 75 when a server runs on the queue.

*Not here*: checks and repairs, which are the provider's (`queue.provider`).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

import attrs

from mailismus.admin.commands import upkeep_wording
from mailismus.admin.commands.broken_pipe import give_up_output
from mailismus.admin.commands.directories import add_options, check_options, find_configured, find_named
from mailismus.admin.commands.progress import ticking
from mailismus.config.values.settings import Settings
from mailismus.errors import StartError
from mailismus.observe.text import shown
from mailismus.queue.fsck.finding import Done, Finding, FsckReport, Severity
from mailismus.queue.fsck.summary import FsckSummary
from mailismus.queue.provider import IProviders

_WIDTH = 12
"""Columns of the severity."""

_MAX_PRINTED = 20
"""Findings of a kind that are told one by one to people."""


@attrs.frozen
class FsckTools:
    """The rest of the program, as far as the command needs it."""

    load: Callable[[argparse.Namespace], Settings]
    """Returns the settings that the arguments name. Raises `ConfigError`."""
    providers: IProviders
    """The queue providers of the program."""
    now: Callable[[], float]
    """UTC seconds."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser], tools: FsckTools) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "fsck",
        help="check or repair a stopped queue",
        description=upkeep_wording.FSCK,
        epilog=upkeep_wording.FSCK_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repair", action="store_true", help="put right what can be put right")
    parser.add_argument("--json", action="store_true", help="JSON instead of text, an object a line")
    add_options(parser)
    parser.set_defaults(run=lambda arguments: _run(arguments, tools))


def _run(arguments: argparse.Namespace, tools: FsckTools) -> int:
    out = _PipeSafeOutput(sys.stdout)
    writer = _JsonWriter(out) if arguments.json else _TextWriter(out)
    report = _open(arguments, tools)
    if arguments.repair:
        with _stopped_at_once():
            return _print_findings(report, writer, out, is_repair=True)
    return _print_findings(report, writer, out, is_repair=False)


@contextmanager
def _stopped_at_once() -> Iterator[None]:
    """Let Ctrl-C end the program at once, as `kill` does: a repair can be stopped anywhere, but a Deferred would take a
    `KeyboardInterrupt` for a failed write."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _print_findings(report: FsckReport, writer: _TextWriter | _JsonWriter, out: _PipeSafeOutput, *, is_repair: bool) -> int:
    """Print the findings. Return the exit code."""
    summary = FsckSummary()
    with ticking(sys.stderr, "repairing" if is_repair else "checking") as ticker:
        for finding in report:
            ticker.hide()
            writer.write(finding)
            out.flush()
            summary.add(finding)
    writer.end(report, summary.counts)
    out.flush()
    return summary.status(is_repair=is_repair)


def _open(arguments: argparse.Namespace, tools: FsckTools) -> FsckReport:
    check_options(arguments)
    if arguments.queue is None:
        found = find_configured(tools.load(arguments).queue, tools.providers)
    elif arguments.repair:
        raise StartError(os.EX_USAGE, "--repair needs the configuration of the queue's server: write --config FILE")
    else:
        found = find_named(arguments, tools.providers)
    queue_path, spool_path = found.place.queue_path, found.place.spool_path
    if spool_path is not None and os.path.samefile(queue_path, spool_path):
        raise StartError(os.EX_USAGE, f"queue and spool are directories of their own, and {queue_path} is given as both")
    provider = found.provider
    if found.settings is None:
        return provider.check_copy(found.place, tools.now())
    return (provider.repair if arguments.repair else provider.check)(found.settings, tools.now())


class _PipeSafeOutput:
    """Output that ignores a broken pipe: without a reader a repair still runs to its end, and the exit code is that of all
    findings."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_read = True

    def write(self, text: str) -> None:
        if self._is_read:
            try:
                self._out.write(text)
            except BrokenPipeError:
                self._close()

    def flush(self) -> None:
        if self._is_read:
            try:
                self._out.flush()
            except BrokenPipeError:
                self._close()

    def _close(self) -> None:
        self._is_read = False
        give_up_output()


def _where(finding: Finding) -> str:
    at = "" if finding.offset is None else f" at {finding.offset}"
    return shown(os.fsencode(finding.path)) + at


class _TextWriter:
    """Three lines for each finding; of many findings of a kind only the first ones, and the number of the others."""

    def __init__(self, out: _PipeSafeOutput) -> None:
        self._out = out
        self._told: Counter[str] = Counter()

    def write(self, finding: Finding) -> None:
        """Print one finding. A failed repair is always printed."""
        self._told[finding.kind] += 1
        if self._told[finding.kind] > _MAX_PRINTED and finding.done is not Done.FAILED:
            return
        indent = " " * _WIDTH
        lines = [f"{finding.severity.value:<{_WIDTH}}{_where(finding)}", f"{indent}{finding.what}"]
        match finding.done:
            case None:
                lines.append(f"{indent}--repair {finding.repair}")
            case Done.FAILED:
                lines.append(f"{indent}NOT REPAIRED: {finding.error}")
            case Done.REPAIRED:
                lines.append(f"{indent}repaired: {finding.repair}")
            case Done.BY_START | Done.NOTHING:
                lines.append(f"{indent}--repair {finding.repair}")
        for line in lines:
            self._out.write(shown(line.encode("utf-8", "surrogateescape")) + "\n")

    def end(self, report: FsckReport, counts: Counter[Severity]) -> None:
        """Print the sums."""
        for kind, count in self._told.items():
            if count > _MAX_PRINTED:
                self._out.write(f"{count} of kind {kind} in all (--json tells each)\n")
        checked = ", ".join(_plural(each.count, each.one, each.many) for each in report.checked)
        found = ", ".join(
            _plural(counts[severity], severity.value, "notes" if severity is Severity.NOTE else severity.value)
            for severity in reversed(Severity)
            if counts[severity]
        )
        self._out.write(f"checked {checked}: {found or 'nothing found'}\n")


class _JsonWriter:
    """An object for each finding, and one for the sums."""

    def __init__(self, out: _PipeSafeOutput) -> None:
        self._out = out

    def write(self, finding: Finding) -> None:
        """Print one finding."""
        value: dict[str, object] = {
            "severity": finding.severity.value,
            "kind": finding.kind,
            "file": os.fsencode(finding.path).decode("utf-8", "backslashreplace"),
            "offset": finding.offset,
            "what": finding.what,
            "repair": finding.repair,
        }
        if finding.done is not None:
            value["done"] = finding.done.name.lower().replace("_", "-")
        if finding.error:
            value["error"] = finding.error
        self._out.write(json.dumps(value) + "\n")

    def end(self, report: FsckReport, counts: Counter[Severity]) -> None:
        """Print the sums."""
        found = {severity.value: counts[severity] for severity in Severity}
        checked = {each.key: each.count for each in report.checked}
        self._out.write(json.dumps({"checked": checked, "found": found}) + "\n")


def _plural(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
