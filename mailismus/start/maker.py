"""The service maker: `twistd` and `twist` call it after reading their options, before the process goes into the background.

*Rules*: everything that can refuse a start is tried here, and refuses it with one line on stderr and an exit code of ours.
The three ways of starting call the same code at the same point, so they end alike. The log goes where the runner's own log
goes: `--logfile`, or `twistd.log`, or stdout with `-n` and with `twist`.
"""

from __future__ import annotations

import os
import resource
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn, cast

from twisted.internet.error import CannotListenError
from twisted.logger import Logger
from twisted.python import usage

from mailismus.config.read.load import Loader, find_file, load
from mailismus.disk.worker import ThreadPool
from mailismus.errors import ConfigError, StartError, StorageError
from mailismus.start.allocator import set_up_allocator
from mailismus.start.exits import Exit, complain, exit_code_of
from mailismus.start.logfile import EventLog, Log, LogDestination
from mailismus.start.notify import Notifier
from mailismus.start.output import FileOutput, Output
from mailismus.start.privileges import Privileges, find_privileges
from mailismus.start.reload import OneFile, Reloader
from mailismus.start.server import Reactor, Server
from mailismus.start.service import MailismusService
from mailismus.start.signals import Signals, remember
from mailismus.start.version import program_version

_PROGRAM = "mailismus"

Build = Callable[..., Server]
"""Makes a server from settings, reactor, mail log and the context manager that raises privileges, as `app.build`."""


class Options(usage.Options):
    """The options of `twistd mailismus` and `twist mailismus`. Wrong options end the program with 64."""

    synopsis = "[--config FILE]"
    longdesc = (
        "Runs the mail queue server. FILE is ./config/mailismus.xml by default, or else /etc/mailismus/mailismus.xml. "
        'The last line of its start is "ready: NAME=HOST:PORT ...". See also: mailismus --help'
    )
    optParameters = [["config", "c", None, "The configuration file."]]

    def parseOptions(self, options: Any = None) -> None:  # Any: Twisted's own signature has no types
        """Parse the options."""
        try:
            super().parseOptions(options)
        except usage.UsageError as error:
            complain(f"{_PROGRAM}: {error}; see: twistd mailismus --help")
            raise SystemExit(int(Exit.USAGE)) from None

    def opt_version(self) -> NoReturn:
        """Show the version and exit."""
        print(f"Mailismus {program_version()}")
        raise SystemExit(0)


def make_service(options: usage.Options, find_build: Callable[[], Build], providers: Sequence[str] = ()) -> MailismusService:
    """Make the service, after trying everything that can refuse a start. `find_build` is called before the user changes,
    because the program may be readable by root alone; `providers`: the queue providers that it knows. Raises `SystemExit`
    with an exit code of ours."""
    os.umask(0o077)
    set_up_allocator()  # the configuration is read by a thread
    signals = remember()  # usually the plugin has called it before
    try:
        return _make_service(options, find_build, signals, providers)
    except (ConfigError, StartError, StorageError) as error:
        complain(str(error))
        raise SystemExit(exit_code_of(error)) from None
    except (OSError, CannotListenError) as error:
        complain(f"{_PROGRAM}: {error}")
        raise SystemExit(exit_code_of(error)) from None
    except Exception as error:
        traceback.print_exc()
        complain(f"{_PROGRAM}: internal error: {error!r}")
        raise SystemExit(int(Exit.SOFTWARE)) from None


def _make_service(
    options: usage.Options, find_build: Callable[[], Build], signals: Signals, providers: Sequence[str]
) -> MailismusService:
    from twisted.internet import reactor as installed

    reactor = cast(Reactor, installed)
    runner: Mapping[str, Any] = options.parent or {}  # Any: options of Twisted's runners, of many types
    build = find_build()
    privileges = find_privileges(runner)
    with privileges.lowered():
        return _make_as_user(options, runner, reactor, privileges, build, signals, Loader(providers=providers))


def _make_as_user(
    options: usage.Options,
    runner: Mapping[str, Any],
    reactor: Reactor,
    privileges: Privileges,
    build: Build,
    signals: Signals,
    loader: Loader,
) -> MailismusService:
    # Make the path absolute now: a daemon changes its directory, and reads the file again on SIGHUP.
    file = find_file(options["config"])
    path = os.path.abspath(file)
    loaded = load(file, loader)
    _raise_open_files()
    log = find_log(runner, reactor)
    notes = list(loaded.notes)
    if os.geteuid() == 0:
        notes.append("The server runs as root; give it a user of its own")
    locate = partial(loaded.locate, file=file)
    try:
        server = build(loaded.settings, reactor, log.maillog, privileges.raised)
    except StartError as error:
        raise locate(error) from error
    worker = ThreadPool(reactor, "reload")
    reloader = Reloader(loaded, OneFile(loader, path), server, worker, reactor)
    return MailismusService(server, reactor, log, notes, reloader, signals, notifier=Notifier(reactor), locate=locate)


def _raise_open_files() -> None:
    """Raise the limit of open files as far as possible without privileges."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            pass  # "unlimited" exceeds the kernel's maximum: the soft limit stays, and is logged when it is reached


def find_log(runner: Mapping[str, Any], reactor: Reactor) -> Log:
    """The log of this runner. Raises `StartError`."""
    if "fileLogObserverFactory" in runner:
        return _find_twist_log(runner, reactor)
    if runner.get("syslog") or runner.get("logger"):
        events = Logger("mail")
        return Log(EventLog(lambda line: events.info("{line}", line=line)), None)
    path = runner.get("logfile")
    if path == "-" and runner and not runner["nodaemon"]:
        raise StartError(Exit.USAGE, f"{_PROGRAM}: a daemon can't log to stdout: write --logfile FILE, or start with -n")
    if path == "-" or (not path and (not runner or runner["nodaemon"])):
        return _make_log(_standard_output(), reactor)
    name = path or "twistd.log"
    try:
        return _make_log(FileOutput(name), reactor)
    except OSError as error:
        raise StartError(exit_code_of(error), f"{_PROGRAM}: the log {name} can't be opened: {error.strerror}") from None


def _find_twist_log(runner: Mapping[str, Any], reactor: Reactor) -> Log:
    """The log of twist, which writes JSON without a terminal. Unless the user asked for that, events become text as mail
    lines are."""
    stream = runner["logFile"]
    log = _make_log(Output(stream.fileno()), reactor)
    if not any(argument.startswith("--log-format") for argument in sys.argv):
        cast(dict[str, Any], runner)["fileLogObserverFactory"] = lambda file: log.destination
    return log


def _standard_output() -> Output:
    try:
        return Output(1)
    except OSError:
        return Output(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC))


def _make_log(output: Output, reactor: Reactor) -> Log:
    destination = LogDestination(output, reactor)
    return Log(destination, destination)
