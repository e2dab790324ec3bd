"""The command line: `mailismus`, also `python -m mailismus`.

*Rules*: the module of each command fills its parser (`start.commands.config`, `admin.commands`) and sets `run`, a function
of the parsed arguments that returns an exit code. It is imported when its command is called, or all are asked for: a
`queue count` beside a loaded server takes as little of the processor as it can. A command that is documented and not built
is refused by name.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, TextIO, TypeAlias, cast

from mailismus.admin.commands.broken_pipe import give_up_output
from mailismus.config.read.files import Files
from mailismus.config.read.load import DEFAULT_FILES, LoadedConfig, Loader, find_file, load, load_for_program
from mailismus.config.read.providers import written_of_others
from mailismus.config.values.settings import Settings
from mailismus.errors import ConfigError, StartError, StorageError
from mailismus.providers import PROVIDERS, Providers
from mailismus.start.commands import wording
from mailismus.start.commands.parser import CommandParser, Parser, ShowVersion
from mailismus.start.exits import Exit, complain, exit_code_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from mailismus.admin.client.stopped import StoppedAnswers
    from mailismus.deliver.routes.locator import Locator
    from mailismus.probe.session import ProbeReactor
    from mailismus.queue.waiting import Explanations
    from mailismus.start.server import Reactor

_PROGRAMS = frozenset({"sendmail", "mailq"})
"""Commands whose options are not ours: other programs write them."""
_ANY = ("0.0.0.0", "::")
"""All addresses of this host."""

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The commands of a command line that is being built."""


class _Context:
    """Context of one run of the command line: its providers, and the configuration that was read."""

    def __init__(self, providers: Providers) -> None:
        self.providers = providers
        self._file = ""
        self._loaded: LoadedConfig | None = None

    def load_settings(self, arguments: argparse.Namespace) -> Settings:
        """Return the settings that these arguments name, for a command that uses no secret. Raises `ConfigError`."""
        files = Files(needs_secrets=False)
        settings = self._load(arguments, files)
        for line, text in files.complaints:
            complain(f"{self._file}:{line}: warning: {text}")
        return settings

    def load_with_secrets(self, arguments: argparse.Namespace) -> Settings:
        """Return the settings that these arguments name, for a command that uses secrets. Raises `ConfigError`."""
        return self._load(arguments, Files())

    def _load(self, arguments: argparse.Namespace, files: Files) -> Settings:
        self._file = find_file(arguments.config)
        self._loaded = load(self._file, Loader(files, self.providers.names))
        return self._loaded.settings

    def find_foreign(self, provider: str) -> tuple[str, ...]:
        """Return the paths of settings that the loaded file says and a queue of this provider does not have."""
        return () if self._loaded is None else written_of_others(self._loaded.given, provider)

    def load_or_default(self, arguments: argparse.Namespace) -> Settings:
        """Return the settings that these arguments name; the defaults if they name none and there is no configuration.
        Raises `ConfigError`."""
        if arguments.config is None and not any(map(os.path.exists, DEFAULT_FILES)):
            return load(DEFAULT_FILES[0], Loader(providers=self.providers.names), b"<mailserver/>").settings
        return self.load_settings(arguments)

    def load_changed(self, arguments: argparse.Namespace, changes: Sequence[tuple[str, str]]) -> Settings:
        """Return the settings of the same file with other values at some paths; it is not changed. Raises `ConfigError`,
        and `StartError` (64) for what is no path."""
        from mailismus.config.edit.change import set_values  # here: other commands change no text
        from mailismus.config.edit.path import PathError, parse_path
        from mailismus.config.read.document import parse_source, parse_text, read_bytes

        self._file = find_file(arguments.config)
        files = Files(needs_secrets=False)
        written = parse_text(read_bytes(self._file, files), self._file)
        text = written.text
        parse_source(text, self._file)
        try:
            for path, value in changes:
                text = set_values(text, parse_path(path), [value])
        except PathError as error:
            raise StartError(Exit.USAGE, f"mailismus plan: --set: {error}") from None
        loader = Loader(Files(needs_secrets=False), self.providers.names)
        return load(self._file, loader, written.encode(text)).settings

    def dead_hosts(self, queue_path: str, now: float) -> list[bytes]:
        """Return the records of the hosts that were dead when a queue was stopped, as lines."""
        from mailismus.deliver.knowledge.host_records import format_line  # here: other commands do not need the deliverer
        from mailismus.deliver.knowledge.host_snapshot import read_snapshot
        from mailismus.disk.posix import Access, PosixDisk
        from mailismus.queue.files.state_file import DIRECTORY, HOSTS

        path = os.path.join(queue_path, DIRECTORY, HOSTS)
        records = read_snapshot(PosixDisk(Access.READ_ONLY), path, now).records
        lines = [format_line(record) for record in records if record.failures]
        return [line for line in lines if line is not None]

    def dump(self, path: str, out: TextIO) -> None:
        """Print a file of a queue readably. Raises `Corrupt`, `OSError`."""
        from mailismus.queue.acts.act_file import dump_acts, is_acts_path  # here: other commands print none of these
        from mailismus.queue.files.mark import MARK, dump_mark
        from mailismus.queue.files.state_file import dump_state, is_state_path

        if os.path.basename(path) == MARK:
            dump_mark(path, out)
        elif is_state_path(path):
            dump_state(path, out)
        elif is_acts_path(path):
            dump_acts(path, out)
        else:
            self.providers.of_file(path).dump(path, out)

    def explain_stopped(self, queue_path: str, now: float) -> Explanations:
        """Return what explains the entries of a stopped queue."""
        from mailismus.deliver.knowledge.host_snapshot import read_snapshot  # here: other commands do not need the deliverer
        from mailismus.deliver.why.stopped import StoppedExplanations
        from mailismus.disk.posix import Access, PosixDisk
        from mailismus.queue.files.state_file import DIRECTORY, HOSTS

        path = os.path.join(queue_path, DIRECTORY, HOSTS)
        return StoppedExplanations(read_snapshot(PosixDisk(Access.READ_ONLY), path, now).records, now)

    def make_locator(self, settings: Settings, reactor: ProbeReactor) -> Locator:
        """Return what finds hosts, as the server does."""
        from mailismus.deliver.routes.assembly import locator_of  # here: other commands do not need the deliverer
        from mailismus.dns.counters import DnsCounters
        from mailismus.start.clock import WallClock

        bound = [(one.name, one.interface or any_address, one.port) for one in settings.listeners for any_address in _ANY]
        return locator_of(settings, reactor, WallClock(reactor), bound, DnsCounters())

    def act_on_stopped(self, settings: Settings) -> StoppedAnswers:
        """Return what answers requests about acts of the stopped queue of these settings."""
        from mailismus.app import open_for_acts  # here: other commands do not need the server
        from mailismus.surgery.stopped import StoppedSession

        return StoppedSession(lambda reactor: open_for_acts(settings, cast("Reactor", reactor), self.providers))

    def locate(self, error: StartError) -> ConfigError | StartError:
        """Return the error with its place in the configuration, if it has one."""
        return self._loaded.locate(error, self._file) if self._loaded is not None else error


def _add_config(commands: _Commands, context: _Context) -> None:
    from mailismus.start.commands import config

    config.register(commands, context.providers)


def _add_admin(commands: _Commands, context: _Context) -> None:
    from mailismus.admin.commands.register import CommandTools, register

    tools = CommandTools(
        context.load_settings,
        context.load_with_secrets,
        context.find_foreign,
        context.providers,
        context.dump,
        context.explain_stopped,
        context.act_on_stopped,
        complain,
    )
    register(commands, tools)


def _add_fsck(commands: _Commands, context: _Context) -> None:
    from mailismus.admin.commands.fsck import FsckTools, register

    register(commands, FsckTools(context.load_settings, context.providers, time.time))


def _add_inject(commands: _Commands, context: _Context) -> None:
    from mailismus.inject.command import InjectTools, register

    register(commands, InjectTools(context.load_settings, context.providers))


def _add_sendmail(commands: _Commands, context: _Context) -> None:
    from mailismus.sendmail.command import register

    register(commands)


def _add_probe(commands: _Commands, context: _Context) -> None:
    from mailismus.probe.command import ProbeTools, register

    register(commands, ProbeTools(context.load_or_default, context.make_locator))


def _add_top(commands: _Commands, context: _Context) -> None:
    from mailismus.top.command import TopTools, register

    register(commands, TopTools(context.load_settings))


def _add_plan(commands: _Commands, context: _Context) -> None:
    from mailismus.plan.command import PlanTools, register

    tools = PlanTools(
        context.load_settings, context.load_changed, context.load_or_default, context.providers, context.dead_hosts
    )
    register(commands, tools)


def _add_demo(commands: _Commands, context: _Context) -> None:
    from mailismus.demo.command import register

    register(commands)


def _add_completion(commands: _Commands, context: _Context) -> None:
    from mailismus.start.commands import completion

    def known_words() -> completion.Known:
        """Words that arguments may be, by their names in the help."""
        from mailismus.admin.commands.completion import FILTER_WORDS
        from mailismus.config.edit.path import all_paths

        paths = tuple(all_paths())
        changes = tuple(f"{path}=" for path in paths)
        return {"FILTER": FILTER_WORDS, "PATH": paths, "PATH=VALUE": changes, "PROVIDER": context.providers.names}

    completion.register(commands, build_parser, known_words)


def _add_manual(commands: _Commands, context: _Context) -> None:
    from mailismus.start.commands import manual

    manual.register(commands, build_parser)


COMMANDS: dict[tuple[str, ...], Callable[[_Commands, _Context], None]] = {
    ("config",): _add_config,
    ("queue", "why", "shell", "dump"): _add_admin,
    ("fsck",): _add_fsck,
    ("inject",): _add_inject,
    ("sendmail", "mailq"): _add_sendmail,
    ("tls",): _add_probe,
    ("top",): _add_top,
    ("plan",): _add_plan,
    ("demo",): _add_demo,
    ("completion",): _add_completion,
    ("manual",): _add_manual,
}
"""In the order of the help: the names of commands, and what imports their module and adds them to the command line."""


def build_parser(context: _Context | None = None, command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line: of all of it, or with the commands of this one's module alone."""
    context = context or _Context(PROVIDERS)
    parser = Parser(
        prog="mailismus",
        description=wording.PROGRAM,
        epilog=wording.PROGRAM_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=ShowVersion)
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"the configuration file (default: ./{DEFAULT_FILES[0]}, else {DEFAULT_FILES[1]}); also behind the command",
    )
    commands: _Commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=CommandParser
    )
    for names, add in COMMANDS.items():
        if command is None or command in names:
            add(commands, context)
    return parser


def find_command(arguments: Sequence[str]) -> str | None:
    """Return the command that these arguments begin with, behind `--config FILE` or not; None: there is none, or another
    option."""
    _, words = _split(arguments)
    return words[0] if words and any(words[0] in names for names in COMMANDS) else None


def find_program(arguments: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return `sendmail` or `mailq` and its own arguments, if these begin with it, or with `--config FILE` and it."""
    config, words = _split(arguments)
    if not words or words[0] not in _PROGRAMS:
        return None
    return words[0], [*([] if config is None else ["-C", config]), *words[1:]]


def _split(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the FILE of `--config FILE` at the begin of these arguments, and what stands behind it."""
    words = list(arguments)
    if len(words) > 1 and words[0] == "--config":
        return words[1], words[2:]
    if words and words[0].startswith("--config="):
        return words[0].partition("=")[2], words[1:]
    return None, words


def main(arguments: Sequence[str] | None = None, providers: Providers = PROVIDERS) -> int:
    """Run one command. Return the exit code. `providers`: the queue providers that it knows. Where standard output was
    closed by the shell, nothing is shown."""
    if sys.stdout is not None:
        return _main(arguments, providers)
    with io.TextIOWrapper(io.BufferedWriter(_Nowhere()), "utf-8") as nothing, redirect_stdout(nothing):
        return _main(arguments, providers)


class _Nowhere(io.RawIOBase):
    """Takes every byte, and keeps none."""

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        return memoryview(data).nbytes


def _main(arguments: Sequence[str] | None, providers: Providers) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    os.umask(0o077)
    program = find_program(given)
    if program is not None:
        from mailismus.sendmail.command import run_sendmail

        return run_sendmail(*program, load_for_program, lambda words: main(words, providers))
    context = _Context(providers)
    try:
        parsed = build_parser(context, find_command(given)).parse_args(given)
        status = int(parsed.run(parsed))
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        give_up_output()  # the reader closed the pipe: no error
        return Exit.OK
    except StartError as error:
        located = context.locate(error)
        complain(str(located))
        return exit_code_of(located)
    except (ConfigError, StorageError) as error:
        complain(str(error))
        return exit_code_of(error)
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename is not None and error.strerror else str(error)
        complain(f"mailismus: {what}")
        return exit_code_of(error)
    except MemoryError:
        complain("mailismus: there is not enough memory for this")
        return os.EX_OSERR
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
