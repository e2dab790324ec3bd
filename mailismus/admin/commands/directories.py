"""The stopped queue of a command: that of `--queue` and `--spool`, or that of the configuration."""

from __future__ import annotations

import argparse
import os

import attrs

from mailismus.config.values.settings import QueueSettings
from mailismus.errors import StartError
from mailismus.queue.provider import IProvider, IProviders, QueuePlace


@attrs.frozen
class FoundQueue:
    """A stopped queue and its provider. `settings` None: it was named by its directories, without a configuration."""

    provider: IProvider
    place: QueuePlace
    settings: QueueSettings | None = None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--queue` and `--spool`."""
    parser.add_argument("--queue", metavar="DIR", help="a queue directory, without a configuration")
    parser.add_argument("--spool", metavar="DIR", help="the spool directory that belongs to it, where it has one")


def add_refused_options(parser: argparse.ArgumentParser) -> None:
    """Add `--queue` and `--spool` to a command of the running server, without help: `refuse_options` says why not."""
    for option in ("--queue", "--spool"):
        parser.add_argument(option, help=argparse.SUPPRESS)


def refuse_options(arguments: argparse.Namespace, command: str) -> None:
    """Raise `StartError` (64) for an option of `add_refused_options`."""
    for option, path in (("--queue", arguments.queue), ("--spool", arguments.spool)):
        if path is not None:
            text = f"mailismus {command} works on the running server, not on files: remove {option} {path}"
            raise StartError(os.EX_USAGE, f"{text}; see: mailismus {command} --help")


def check_options(arguments: argparse.Namespace) -> None:
    """Raise `StartError` (64) for `--spool` without `--queue`."""
    if arguments.queue is None and arguments.spool is not None:
        raise StartError(os.EX_USAGE, "--spool DIR belongs to --queue DIR: write both, or neither")


def find_named(arguments: argparse.Namespace, providers: IProviders) -> FoundQueue:
    """Return the queue of `--queue` and `--spool`; its mark names the provider. Raises `StartError`, `OSError`."""
    queue_path, spool_path = arguments.queue, arguments.spool
    _need_directory(queue_path)
    try:
        provider = providers.found_in(os.path.abspath(queue_path))
    except FileNotFoundError:
        text = f"there is no queue: {queue_path} has no mark of a provider, and no files of one"
        raise StartError(os.EX_CONFIG, text) from None
    if provider.has_spool and spool_path is None:
        text = f"{queue_path} holds a queue of provider {provider.name}, which has a spool: write --spool DIR too"
        raise StartError(os.EX_USAGE, text)
    if not provider.has_spool and spool_path is not None:
        text = f"{queue_path} holds a queue of provider {provider.name}, which has no spool: remove --spool {spool_path}"
        raise StartError(os.EX_USAGE, text)
    if spool_path is not None:
        _need_directory(spool_path)
        spool_path = os.path.abspath(spool_path)
    return FoundQueue(provider, QueuePlace(os.path.abspath(queue_path), spool_path))


def find_configured(settings: QueueSettings, providers: IProviders) -> FoundQueue:
    """Return the queue of these settings. One in services needs no directory here. Raises `StartError`, `OSError`."""
    if settings.services is None:
        _need_directory(settings.rootpath)
    provider = providers.configured(settings)
    spool_path = settings.spool.rootpath if provider.has_spool else None
    if spool_path is not None:
        _need_directory(spool_path)
    return FoundQueue(provider, QueuePlace(settings.rootpath, spool_path, settings.services), settings)


def _need_directory(path: str) -> None:
    """Raise `StartError` (78) unless this is a directory, `OSError` where that is unknown."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise StartError(os.EX_CONFIG, f"there is no queue: {path} does not exist") from None
    if not os.path.isdir(path):
        raise StartError(os.EX_CONFIG, f"there is no queue: {path} is no directory")
