"""The command `mailismus inject -f SENDER RECIPIENT...`.

*Not here*: what it does (`run`), which is imported when it is asked for: other commands need neither SMTP nor a queue.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

import attrs

from mailismus.admin.commands.broken_pipe import give_up_output
from mailismus.config.values.settings import Settings
from mailismus.errors import StartError
from mailismus.inject import wording
from mailismus.queue.provider import IProviders


@attrs.frozen
class InjectTools:
    """The rest of the program, as far as the command needs it."""

    load: Callable[[argparse.Namespace], Settings]
    """The settings that the arguments name. Raises `ConfigError`."""

    providers: IProviders
    """The queue providers of the program."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser], tools: InjectTools) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "inject",
        help="put a message into the queue",
        description=wording.INJECT,
        epilog=wording.INJECT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-f",
        dest="sender",
        metavar="SENDER",
        required=True,
        help="the sender of the envelope, who gets reports; '' for none",
    )
    parser.add_argument("recipients", metavar="RECIPIENT", nargs="+", help="an address that shall have the message")
    parser.set_defaults(run=lambda arguments: _run(arguments, tools))


def _run(arguments: argparse.Namespace, tools: InjectTools) -> int:
    from mailismus.inject.run import run_inject

    settings = tools.load(arguments)
    sender, *recipients = (_address(text) for text in (arguments.sender, *arguments.recipients))
    if not all(recipients):
        raise StartError(os.EX_USAGE, "a recipient is empty: write an address")
    if sys.stdin is None:  # it was closed by the shell
        raise StartError(os.EX_USAGE, "there is no message: standard input is closed")
    name = run_inject(settings, tools.providers, sender, recipients, sys.stdin.buffer)
    try:
        print(name, flush=True)
    except OSError as error:  # the message is durable: who called must not send it again
        give_up_output()
        print(f"the message is in the queue as {name}, which can't be printed: {error}", file=sys.stderr)
    return os.EX_OK


def _address(text: str) -> bytes:
    """The address, which may stand between angle brackets."""
    return os.fsencode(text[1:-1] if text.startswith("<") and text.endswith(">") else text)
