"""The command line: `mailismus`, also `python -m mailismus`.

*Rules*: each command's parser is filled in where its work is (`start.configcommands`, `admin.commands`); it sets `run`,
a function of the parsed arguments that gives an exit code. A command that is documented and not built is refused by name.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import NoReturn, TextIO

from mailismus.admin.client.source import IPlanCounter, IStoppedQueue
from mailismus.admin.commands.broken_pipe import give_up_output
from mailismus.admin.commands.fsck import FsckTools
from mailismus.admin.commands.fsck import register as register_fsck
from mailismus.admin.commands.register import CommandTools
from mailismus.admin.commands.register import register as register_admin
from mailismus.config.read.load import DEFAULT_FILES, find_file, load
from mailismus.config.values.settings import QueueSettings, Settings
from mailismus.errors import ConfigError, StartError, StorageError
from mailismus.queue.finding import FsckReport
from mailismus.start import configcommands, manual, wording
from mailismus.start.exits import Exit, complain, exit_code_of
from mailismus.start.version import program_version

_NOT_BUILT = frozenset({"why", "sendmail", "mailq"})
_NOT_BUILT_QUEUE = frozenset({"hold", "release", "delete", "bounce"})
_WITH_VALUE = frozenset({"--config", "-c", "--queue", "--spool"})


class _Parser(argparse.ArgumentParser):
    """A parser whose errors end the program with 64, and that takes the options of a command between its other words."""

    _is_within = False

    def parse_known_args(  # type: ignore[override] # typeshed has overloads for namespaces of every type
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        if self._is_within or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._is_within = True  # what is called next calls us again
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_within = False

    def error(self, message: str) -> NoReturn:
        complain(f"{self.prog}: {message}; see: {self.prog} --help")
        raise SystemExit(int(Exit.USAGE))


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = _Parser(
        prog="mailismus",
        description=wording.PROGRAM,
        epilog=wording.PROGRAM_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"Mailismus {program_version()}")
    parser.add_argument(
        "--config", metavar="FILE", help=f"the configuration file (default: ./{DEFAULT_FILES[0]}, else {DEFAULT_FILES[1]})"
    )
    commands: argparse._SubParsersAction[argparse.ArgumentParser] = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=_Parser
    )
    configcommands.register(commands)
    register_admin(commands, CommandTools(load_settings, _open_offline, _new_counter, _dump, complain))
    register_fsck(commands, FsckTools(load_settings, _check_queue, _check_copy, _repair_queue, time.time))
    manual.register(commands, build_parser)
    return parser


def load_settings(arguments: argparse.Namespace) -> Settings:
    """The settings that these arguments name. Raises `ConfigError`."""
    return load(find_file(arguments.config)).settings


def _open_offline(queue_path: str, spool_path: str) -> IStoppedQueue:
    # Imported where it is needed: most commands ask the running server and shall start fast.
    from mailismus.queue.providers.clustered.recovery.offline import open_readonly

    return open_readonly(queue_path, spool_path)


def _new_counter() -> IPlanCounter:
    from mailismus.disk.posix import Access, PosixDisk
    from mailismus.queue.providers.clustered.read import planned_count as planned

    return planned.PlanCounter(PosixDisk(Access.READ_ONLY))


def _dump(path: str, out: TextIO) -> None:
    from mailismus.queue.providers.clustered.dump import dump

    dump(path, out)


def _check_queue(settings: QueueSettings, now: float) -> FsckReport:
    from mailismus.queue.providers.clustered.fsck.check import check_configured

    return check_configured(settings, now)


def _check_copy(queue_path: str, spool_path: str, now: float) -> FsckReport:
    from mailismus.queue.providers.clustered.fsck.check import check_copied

    return check_copied(queue_path, spool_path, now)


def _repair_queue(settings: QueueSettings, now: float) -> FsckReport:
    from mailismus.queue.providers.clustered.fsck.check import repair

    return repair(settings, now)


def find_unbuilt(arguments: Sequence[str]) -> str | None:
    """The command asked for, where it is documented but not built."""
    words = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in _WITH_VALUE:
            skip = True
        elif not argument.startswith("-"):
            words.append(argument)
    if words and words[0] in _NOT_BUILT:
        return words[0]
    if len(words) > 1 and words[0] == "queue" and words[1] in _NOT_BUILT_QUEUE:
        return f"queue {words[1]}"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    os.umask(0o077)
    unbuilt = find_unbuilt(given)
    if unbuilt is not None:
        complain(f"mailismus: {unbuilt} is not available in this version")
        return Exit.USAGE
    try:
        parsed = build_parser().parse_args(given)
        status = int(parsed.run(parsed))
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        give_up_output()  # who read it has seen enough: no error
        return Exit.OK
    except (ConfigError, StartError, StorageError) as error:
        complain(str(error))
        return exit_code_of(error)
    except OSError as error:
        complain(f"mailismus: {error}")
        return exit_code_of(error)
    except MemoryError:
        complain("mailismus: there is not enough memory for this")
        return os.EX_OSERR
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
