"""The commands `mailismus config set` and `unset`: one element of the file is changed, if the result is a good one.

*Rules*: the file is locked from reading to writing. The changed text is loaded and advised on first; with an error the file
is not touched (78). A file that another program has changed meanwhile is left as it is (75).
"""

from __future__ import annotations

import argparse
import difflib
import re
import time
from collections.abc import Callable, Sequence

from mailismus.config.edit.change import set_values, unset
from mailismus.config.edit.path import PathError, parse_path
from mailismus.config.edit.replacement import Changed, NotDurable, Replacement
from mailismus.config.read.changes import what_changed
from mailismus.config.read.document import MAX_BYTES, parse_source, parse_text
from mailismus.config.read.load import LoadedConfig, Loader, find_file, load
from mailismus.errors import ConfigError, StartError
from mailismus.observe.text import shown
from mailismus.start.commands.config_advice import say_advice
from mailismus.start.exits import Exit, complain, exit_code_of, one_line

_LINE_END = re.compile(r"\r\n?|\n")
_CONTEXT_LINES = 3

Edit = Callable[[str], str]
"""Changes a text. Raises `PathError`."""


def run_set(arguments: argparse.Namespace) -> int:
    """`config set PATH VALUE... [--unset PATH...]`."""

    def edit(text: str) -> str:
        return _without(set_values(text, parse_path(arguments.path), arguments.values), arguments.unset)

    return _run(arguments, edit)


def run_unset(arguments: argparse.Namespace) -> int:
    """`config unset PATH...`."""
    return _run(arguments, lambda text: _without(text, arguments.paths))


def _without(text: str, paths: Sequence[str]) -> str:
    for path in paths:
        text = unset(text, parse_path(path))
    return text


def _run(arguments: argparse.Namespace, edit: Edit) -> int:
    file = find_file(arguments.config)
    replacement = Replacement(file)
    try:
        _open(replacement, file)
        return _change(file, replacement, edit, arguments.dry_run)
    finally:
        replacement.close()


def _open(replacement: Replacement, file: str) -> None:
    try:
        replacement.open(MAX_BYTES + 1)
    except OSError as error:
        remedy = "name another with --config FILE; `mailismus config sample` prints one to begin with"
        raise ConfigError(file, 0, f"the configuration file can't be read: {error.strerror}: {remedy}") from None


def _change(file: str, replacement: Replacement, edit: Edit, is_dry: bool) -> int:
    written = parse_text(replacement.data, file)
    parse_source(written.text, file)
    try:
        text = edit(written.text)
    except PathError as error:
        raise StartError(Exit.USAGE, f"mailismus config: {error}") from None
    if text == written.text:
        print(one_line(f"{file}: nothing to change"))
        return Exit.OK
    data, loader = written.encode(text), Loader()
    old = _load_former(file, replacement.data, loader)
    new = _check(file, data, old, loader)
    if new is None:
        return Exit.CONFIG
    if is_dry:
        _print_difference(file, written.text, text)
    else:
        _replace(replacement, data, file)
    if old is not None:  # else it was no good file: no server runs with it
        _say_changes(file, old, new)
    if not is_dry:
        print(one_line(f"{file}: written; the former text is in {replacement.kept_path}"))
    return Exit.OK


def _load_former(file: str, data: bytes, loader: Loader) -> LoadedConfig | None:
    """What the text says before the change; None: there are errors in it."""
    try:
        return load(file, loader, data)
    except ConfigError:
        return None


def _check(file: str, data: bytes, old: LoadedConfig | None, loader: Loader) -> LoadedConfig | None:
    """What the changed text says; None: there are errors beside the values. Says them, and warnings that are new. Raises
    `ConfigError`."""
    try:
        new = load(file, loader, data)
    except ConfigError as error:
        raise ConfigError(file, error.line, f"{error.text}; the file was not changed") from None
    if not say_advice(file, new, time.time(), old):
        complain(f"{file} was not changed; the lines are those of the changed text")
        return None
    return new


def _replace(replacement: Replacement, data: bytes, file: str) -> None:
    try:
        replacement.replace(data)
    except Changed as error:
        raise StartError(Exit.TEMPFAIL, f"{error}; look at it, and try again") from None
    except NotDurable as error:
        raise StartError(Exit.IO, f"{error}; a power cut may undo it") from None
    except OSError as error:
        text = f"{file} can't be written: {error.strerror}; it was not changed"
        raise StartError(exit_code_of(error), text) from None


def _say_changes(file: str, old: LoadedConfig, new: LoadedConfig) -> None:
    """What the change means for a running server."""
    changes = what_changed(old.effective, new.effective)
    for change in changes:
        place = f"{file}:{change.line}" if change.line else file
        print(one_line(f"{place}: {change}"))
    if _has_default_relay(old) and not _has_default_relay(new):
        print(one_line(f"{file}: no default relay is left: mail that no relay takes goes to the MX hosts of its domain"))
    if not changes:
        print(one_line(f"{file}: every value in force stays as it is"))
    elif any(change.is_fixed for change in changes):
        names = ", ".join(dict.fromkeys(change.path for change in changes if change.is_fixed))
        print(one_line(f"{file}: a running server has to be restarted: {names} can't change while it runs"))
    else:
        print(one_line(f"{file}: for a running server SIGHUP is enough"))


def _has_default_relay(loaded: LoadedConfig) -> bool:
    return any(not relay.destdomains and not relay.senders for relay in loaded.settings.deliver.relays)


def _print_difference(file: str, old: str, new: str) -> None:
    lines = difflib.unified_diff(
        _LINE_END.split(old), _LINE_END.split(new), file, f"{file} (changed)", n=_CONTEXT_LINES, lineterm=""
    )
    for line in lines:
        print(shown(line.replace("\t", "    ").encode("utf-8", "backslashreplace")))
