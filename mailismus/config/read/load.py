"""Loading: a configuration file to settings, with the notes and origins that go with them.

*Rules*: nothing is asked of a network. Every error is a `ConfigError`, a missing or unreadable file too, and one that does
not answer. `load` waits for no such file; `Loader.load` does, and tells another thread which it is.
"""

from __future__ import annotations

import os
import queue
import resource
import threading
from collections.abc import Sequence

import attrs

from mailismus.config.read import document
from mailismus.config.read.assemble import Assembly
from mailismus.config.read.check import Given, check_shape, convert, convert_setting, default_block
from mailismus.config.read.document import Element
from mailismus.config.read.effective import list_effective
from mailismus.config.read.files import ANSWER_S, Files
from mailismus.config.read.hostname import host_name
from mailismus.config.read.providers import refuse_settings_of_others
from mailismus.config.read.sendmail import assemble_for_program
from mailismus.config.table import application as app
from mailismus.config.table.kinds import ReadContext
from mailismus.config.table.root import MAILSERVER, MTA
from mailismus.config.table.submit import LISTENER, LISTENERS, SUBMIT
from mailismus.config.values.effective import Effective
from mailismus.config.values.settings import ProgramSettings, Settings
from mailismus.errors import ConfigError, StartError

LOOK_S = 0.25
"""How often it is looked whether a file hangs."""
DEFAULT_FILES = ("config/mailismus.xml", "/etc/mailismus/mailismus.xml")


@attrs.frozen
class LoadedConfig:
    """A configuration. `notes`: sentences for the log; `effective`: every value in force, in the table's order; `given`: the
    same as a tree, with lines."""

    settings: Settings
    notes: tuple[str, ...]
    effective: tuple[Effective, ...]
    given: Given = attrs.field(repr=False, eq=False)

    def locate(self, error: StartError, file: str) -> ConfigError | StartError:
        """The error with the line of the setting that it is about; as it is, where it is about none."""
        line = next((one.near for one in self.effective if one.path == error.setting), None)
        return error if line is None else ConfigError(file, line, error.text)


def find_file(given: str | None) -> str:
    """The configuration file to use: the given one, else the first of `DEFAULT_FILES` that is there, else the first."""
    if given is not None:
        return given
    return next((file for file in DEFAULT_FILES if os.path.exists(file)), DEFAULT_FILES[0])


class Loader:
    """Loads a configuration repeatedly; a file whose content is unchanged is not parsed again. One load at a time.

    `providers`: queue providers that the program has, beside those of the table."""

    def __init__(self, files: Files | None = None, providers: Sequence[str] = ()) -> None:
        self._files = files or Files()
        self._providers = tuple(providers)
        self._file = ""

    def load(self, file: str, data: bytes | None = None) -> LoadedConfig:
        """Read, check and convert a file, named in errors as it is given here; `data`: as if it held these bytes. Blocks,
        for ever if a file does not answer. Raises `ConfigError`."""
        files, self._file = self._files, file
        files.begin()
        top = document.read(file, files) if data is None else document.parse(data, file)
        loaded = load_tree(top, file, host_name(files), hard_open_files(), files, self._providers)
        files.end()
        return loaded

    def find_hanging(self) -> ConfigError | None:
        """Return the error about a file that does not answer `load` in another thread; None: there is none."""
        reading = self._files.find_hanging()
        if reading is None:
            return None
        text = f"{reading.path} does not answer: nothing came of it for {ANSWER_S:g} s; see whether its file system hangs"
        return ConfigError(self._file, reading.line, text)


def load(file: str, loader: Loader | None = None, data: bytes | None = None) -> LoadedConfig:
    """Read, check and convert a file, named in errors as it is given here; `data`: as if it held these bytes. Raises
    `ConfigError`, for a file that does not answer too; the thread that waits for it is left behind."""
    loading = loader or Loader()
    done: queue.SimpleQueue[LoadedConfig | BaseException] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put(loading.load(file, data))
        except BaseException as error:
            done.put(error)

    thread = threading.Thread(target=run, name="configuration", daemon=True)
    thread.start()
    while True:
        try:
            result = done.get(timeout=LOOK_S)
        except queue.Empty:
            hanging = loading.find_hanging()
            if hanging is not None:
                raise hanging from None
            continue
        thread.join()  # no thread of ours is there when a daemon forks
        if isinstance(result, BaseException):
            raise result
        return result


def default_settings(root: str) -> Settings:
    """The settings of an empty `<mailserver/>` whose root is the directory `root`: what tests begin with.

    The host is called mx.example.net, and there is no open-file limit.
    """
    file = os.path.join(root, "config", "mailismus.xml")
    return load_tree(Element(MAILSERVER.name, 1, {}), file, "mx.example.net", None).settings


def load_for_program(file: str) -> ProgramSettings:
    """Read and check a file for the command `sendmail`: nothing that it names has to be readable. Raises `ConfigError`."""
    files = Files(needs_secrets=False)
    files.begin()
    top = document.read(file, files, "-C FILE or MAILISMUS_CONFIG")
    given, listeners = _convert(top, file, host_name(files), ())
    return assemble_for_program(given, listeners[0], file, files)


def load_tree(
    top: Element,
    file: str,
    host: str,
    hard_limit: int | None,
    files: Files | None = None,
    providers: tuple[str, ...] = (),
) -> LoadedConfig:
    """The configuration that a document says, for a host of that name and with that hard open-file limit (None: none).
    `providers`: queue providers beside those of the table."""
    given, listeners = _convert(top, file, host, providers)
    assembly = Assembly(given, listeners, file, hard_limit, files or Files())
    settings = assembly.settings()
    effective = list_effective(given, assembly.changed, assembly.contents)
    settings = attrs.evolve(settings, effective=effective)
    return LoadedConfig(settings, tuple(assembly.notes), effective, given)


def _convert(top: Element, file: str, host: str, providers: tuple[str, ...]) -> tuple[Given, list[Given]]:
    """Return the values of a document, and its listeners, of which there is one at least. Raises `ConfigError`."""
    check_shape(top, file)
    context = attrs.evolve(_find_context(top, file, host), providers=providers)
    given = convert(MAILSERVER, top, context, file)
    refuse_settings_of_others(given, file)
    listeners = given.one(MTA).one(SUBMIT).one(LISTENERS).all(LISTENER)
    if not listeners:
        listeners.append(default_block(LISTENER, context, file))
    return given, listeners


def hard_open_files() -> int | None:
    """The hard limit of open files of this process, None where there is none."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if limit == resource.RLIM_INFINITY else limit


def _find_context(top: Element, file: str, host: str) -> ReadContext:
    """Return the values of the tokens: the path of each directory may use the tokens before it."""
    context = ReadContext(os.path.dirname(os.path.abspath(file)), {"SYSNAME": host})
    application = next((child for child in top.children if child.name == app.APPLICATION.name), None)
    dirpaths = None
    if application is not None:
        dirpaths = next((child for child in application.children if child.name == app.DIRPATHS.name), None)
    for token, setting in (("DIRTOP", app.ROOT), ("DIRCONF", app.CONFIG), ("DIRVAR", app.VAR), ("DIRLOG", app.LOGS)):
        path = convert_setting(setting, dirpaths, app.DIRPATHS, context, file)
        context = attrs.evolve(context, tokens={**context.tokens, token: path})
    return context
