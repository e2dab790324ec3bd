"""Loading: a configuration file to settings, with the notes and origins that go with them.

*Rules*: nothing is asked of a network. Every error is a `ConfigError`, a missing or unreadable file too.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator

import attrs

from mailismus.config import document
from mailismus.config import table_application as app
from mailismus.config.assemble import Assembly
from mailismus.config.certificates import DAY_S, describe_end
from mailismus.config.check import Given, check_shape, convert, convert_setting, default_block
from mailismus.config.document import Element
from mailismus.config.effective import Effective, list_effective
from mailismus.config.hostname import host_name
from mailismus.config.kinds import Place
from mailismus.config.settings import Settings
from mailismus.config.table_root import MAILSERVER, MTA
from mailismus.config.table_submit import LISTENER, LISTENERS, SUBMIT

SOON_DAYS = 14
"""Days before its end that a certificate is worth a note."""
DEFAULT_FILES = ("config/mailismus.xml", "/etc/mailismus/mailismus.xml")


@attrs.frozen
class Loaded:
    """A configuration. `notes`: sentences for the log; `effective`: every value in force, in the table's order; `given`: the
    same as a tree, with lines."""

    settings: Settings
    notes: tuple[str, ...]
    effective: tuple[Effective, ...]
    given: Given = attrs.field(repr=False, eq=False)


def find_file(given: str | None) -> str:
    """The configuration file to use: the given one, else the first of `DEFAULT_FILES` that is there, else the first."""
    if given is not None:
        return given
    return next((file for file in DEFAULT_FILES if os.path.exists(file)), DEFAULT_FILES[0])


def load(file: str) -> Loaded:
    """Read, check and convert a file. `file` is named in errors as it is given here. Raises `ConfigError`."""
    loaded = load_tree(document.read(file), file, host_name(), hard_open_files())
    return attrs.evolve(loaded, notes=loaded.notes + tuple(_note_certificates(loaded.settings, time.time())))


def default_settings(root: str) -> Settings:
    """The settings of an empty `<mailserver/>` whose root is the directory `root`: what tests begin with.

    The host is called mx.example.net, and there is no open-file limit.
    """
    file = os.path.join(root, "config", "mailismus.xml")
    return load_tree(Element(MAILSERVER.name, 1, {}), file, "mx.example.net", None).settings


def load_tree(top: Element, file: str, host: str, hard_limit: int | None) -> Loaded:
    """The configuration that a document says, for a host of that name and with that hard open-file limit (None: none)."""
    check_shape(top, file)
    place = _find_place(top, file, host)
    given = convert(MAILSERVER, top, place, file)
    listeners = given.one(MTA).one(SUBMIT).one(LISTENERS).all(LISTENER)
    if not listeners:
        listeners.append(default_block(LISTENER, place, file))
    assembly = Assembly(given, listeners, file, hard_limit)
    settings = assembly.settings()
    effective = list_effective(given, assembly.changed, assembly.contents)
    return Loaded(settings, tuple(assembly.notes), effective, given)


def hard_open_files() -> int | None:
    """The hard limit of open files of this process, None where there is none."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if limit == resource.RLIM_INFINITY else limit


def _note_certificates(settings: Settings, now: float) -> Iterator[str]:
    """What is wrong today with certificates that are well in themselves."""
    for listener in settings.listeners:
        ssl = listener.ssl
        if ssl is None:
            continue
        if ssl.ends_at - now < SOON_DAYS * DAY_S:
            yield f"the certificate {ssl.certificate_path} of listener {listener.name} {describe_end(ssl.ends_at, now)}"
        elif ssl.begins_at > now:
            yield f"the certificate {ssl.certificate_path} of listener {listener.name} is not valid yet"


def _find_place(top: Element, file: str, host: str) -> Place:
    """What the tokens stand for: each directory may be named by those before it."""
    place = Place(os.path.dirname(os.path.abspath(file)), {"SYSNAME": host})
    application = next((child for child in top.children if child.name == app.APPLICATION.name), None)
    dirpaths = None
    if application is not None:
        dirpaths = next((child for child in application.children if child.name == app.DIRPATHS.name), None)
    for token, setting in (("DIRTOP", app.ROOT), ("DIRCONF", app.CONFIG), ("DIRVAR", app.VAR), ("DIRLOG", app.LOGS)):
        path = convert_setting(setting, dirpaths, app.DIRPATHS, place, file)
        place = attrs.evolve(place, tokens={**place.tokens, token: path})
    return place
