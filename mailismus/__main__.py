"""The command line: `mailismus`, also `python -m mailismus`.

*Rules*: the module of each command fills its parser (`start.commands.config`, `admin.commands`) and sets `run`, a function
of the parsed arguments that returns an exit code. A command that is documented and not built is refused by name.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, cast

from mailismus.admin.client.stopped import StoppedAnswers
from mailismus.admin.commands.broken_pipe import give_up_output
from mailismus.admin.commands.completion import FILTER_WORDS
from mailismus.admin.commands.fsck import FsckTools
from mailismus.admin.commands.fsck import register as register_fsck
from mailismus.admin.commands.register import CommandTools
from mailismus.admin.commands.register import register as register_admin
from mailismus.config.edit.change import set_values
from mailismus.config.edit.path import PathError, all_paths, parse_path
from mailismus.config.read.document import parse_source, parse_text, read_bytes
from mailismus.config.read.files import Files
from mailismus.config.read.load import DEFAULT_FILES, LoadedConfig, Loader, find_file, load, load_for_program
from mailismus.config.read.providers import written_of_others
from mailismus.config.values.settings import Settings
from mailismus.demo.command import register as register_demo
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import ConfigError, StartError, StorageError
from mailismus.inject.command import InjectTools
from mailismus.inject.command import register as register_inject
from mailismus.plan.command import PlanTools
from mailismus.plan.command import register as register_plan
from mailismus.probe.command import ProbeTools
from mailismus.probe.command import register as register_probe
from mailismus.providers import PROVIDERS, Providers
from mailismus.queue.acts.act_file import dump_acts, is_acts_path
from mailismus.queue.files.mark import MARK, dump_mark
from mailismus.queue.files.state_file import DIRECTORY, HOSTS, dump_state, is_state_path
from mailismus.queue.waiting import Explanations
from mailismus.sendmail.command import register as register_sendmail
from mailismus.sendmail.command import run_sendmail
from mailismus.start.commands import completion, manual, wording
from mailismus.start.commands import config as configcommands
from mailismus.start.exits import Exit, complain, exit_code_of
from mailismus.start.version import program_version
from mailismus.top.command import TopTools
from mailismus.top.command import register as register_top

if TYPE_CHECKING:
    from mailismus.deliver.routes.locator import Locator
    from mailismus.probe.session import ProbeReactor
    from mailismus.start.server import Reactor

_PROGRAMS = frozenset({"sendmail", "mailq"})
"""Commands whose options are not ours: other programs write them."""
_ANY = ("0.0.0.0", "::")
"""All addresses of this host."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors end the program with 64, and that takes the options of a command between its other words."""

    _is_within = False

    def parse_known_args(  # type: ignore[override] # typeshed has overloads for namespaces of every type
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        if self._is_within or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._is_within = True  # argparse calls this method again
        try:
            parsed, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_within = False
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")  # here, so that the hint names the command
        return parsed, []

    def error(self, message: str) -> NoReturn:
        complain(f"{self.prog}: {message}; see: {self.prog} --help")
        raise SystemExit(int(Exit.USAGE))


class _CommandParser(_Parser):
    """The parser of a command, and of the commands below it: `--config` may stand behind each too; the last one counts."""

    def __init__(self, **words: Any) -> None:
        super().__init__(**words)
        self.add_argument("--config", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


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

        path = os.path.join(queue_path, DIRECTORY, HOSTS)
        records = read_snapshot(PosixDisk(Access.READ_ONLY), path, now).records
        lines = [format_line(record) for record in records if record.failures]
        return [line for line in lines if line is not None]

    def dump(self, path: str, out: TextIO) -> None:
        """Print a file of a queue readably. Raises `Corrupt`, `OSError`."""
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


def build_parser(context: _Context | None = None) -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    context = context or _Context(PROVIDERS)
    parser = _Parser(
        prog="mailismus",
        description=wording.PROGRAM,
        epilog=wording.PROGRAM_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"Mailismus {program_version()}")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"the configuration file (default: ./{DEFAULT_FILES[0]}, else {DEFAULT_FILES[1]}); also behind the command",
    )
    commands: argparse._SubParsersAction[argparse.ArgumentParser] = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=_CommandParser
    )
    configcommands.register(commands)
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
    register_admin(commands, tools)
    register_fsck(commands, FsckTools(context.load_settings, context.providers, time.time))
    register_inject(commands, InjectTools(context.load_settings, context.providers))
    register_sendmail(commands)
    register_probe(commands, ProbeTools(context.load_or_default, context.make_locator))
    register_top(commands, TopTools(context.load_settings))
    plan_tools = PlanTools(
        context.load_settings, context.load_changed, context.load_or_default, context.providers, context.dead_hosts
    )
    register_plan(commands, plan_tools)
    register_demo(commands)
    completion.register(commands, build_parser, _known_words)
    manual.register(commands, build_parser)
    return parser


def _known_words() -> completion.Known:
    """Words that arguments may be, by their names in the help."""
    paths = tuple(all_paths())
    return {"FILTER": FILTER_WORDS, "PATH": paths, "PATH=VALUE": tuple(f"{path}=" for path in paths)}


def find_program(arguments: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return `sendmail` or `mailq` and its own arguments, if these begin with it, or with `--config FILE` and it."""
    words = list(arguments)
    config: list[str] = []
    if len(words) > 1 and words[0] == "--config":
        config, words = ["-C", words[1]], words[2:]
    elif words and words[0].startswith("--config="):
        config, words = ["-C", words[0].partition("=")[2]], words[1:]
    return (words[0], [*config, *words[1:]]) if words and words[0] in _PROGRAMS else None


def main(arguments: Sequence[str] | None = None, providers: Providers = PROVIDERS) -> int:
    """Run one command. Return the exit code. `providers`: the queue providers that it knows."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    os.umask(0o077)
    program = find_program(given)
    if program is not None:
        return run_sendmail(*program, load_for_program, lambda words: main(words, providers))
    context = _Context(providers)
    try:
        parsed = build_parser(context).parse_args(given)
        status = int(parsed.run(parsed))
        if sys.stdout is not None:  # it was closed by the shell
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
