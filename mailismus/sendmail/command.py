"""The commands `sendmail` and `mailq`, as other programs call them.

*Rules*: the name of the program decides too: `mailq` lists. The configuration is that of `-C`, else of the environment's
MAILISMUS_CONFIG, else /etc/mailismus/mailismus.xml: never one of the present directory, which may be anybody's. Whatever
goes wrong is a line on stderr and an exit code.
"""

from __future__ import annotations

import argparse
import os
import pwd
import sys
import time
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import partial
from typing import BinaryIO

from mailismus.admin.commands.broken_pipe import give_up_output
from mailismus.config.values.settings import ProgramSettings
from mailismus.errors import ConfigError, StartError
from mailismus.observe.text import shown
from mailismus.sendmail import wording
from mailismus.sendmail.addresses import bare, listed, qualify
from mailismus.sendmail.header import Completion, author_of
from mailismus.sendmail.message import read_message
from mailismus.sendmail.options import Mode, SendmailOptions, UsageError, parse_options
from mailismus.sendmail.sending import send

CONFIG = "/etc/mailismus/mailismus.xml"
VARIABLE = "MAILISMUS_CONFIG"

Manage = Callable[[Sequence[str]], int]
"""The command line `mailismus`."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Show the commands in help and manual. Their own options are no matter of the command line: `run_sendmail` is called
    before it is parsed."""
    for name, text, description, epilog in (
        ("sendmail", "send the message on standard input, as programs do", wording.SENDMAIL, wording.SENDMAIL_EPILOG),
        ("mailq", "list the queue, as programs do", wording.MAILQ, wording.MAILQ_EPILOG),
    ):
        commands.add_parser(
            name,
            help=text,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=False,
        )


def run_sendmail(name: str, words: Sequence[str], load: Callable[[str], ProgramSettings], manage: Manage) -> int:
    """Run one call. `name`: that of the program; `load`: reads a configuration for it. Return the exit code."""
    if "--help" in words[:1]:
        print(wording.USAGE, wording.SENDMAIL, "", wording.SENDMAIL_EPILOG, sep="\n")
        return os.EX_OK
    try:
        options = parse_options(name, words)
        config = options.config or os.environ.get(VARIABLE) or CONFIG
        return _run(options, config, load, manage)
    except UsageError as error:
        return _complain(name, os.EX_USAGE, f"{error}; see: sendmail --help")
    except ConfigError as error:
        return _complain(name, os.EX_CONFIG, str(error))
    except StartError as error:
        return _complain(name, error.status, error.text)
    except BrokenPipeError:
        give_up_output()
        return os.EX_IOERR
    except OSError as error:
        return _complain(name, os.EX_IOERR, f"{error.filename or 'the message'}: {error.strerror or error}")
    except MemoryError:
        return _complain(name, os.EX_OSERR, "there is not enough memory for this")
    except KeyboardInterrupt:
        return 130


def _run(options: SendmailOptions, config: str, load: Callable[[str], ProgramSettings], manage: Manage) -> int:
    if options.mode is Mode.ALIASES:
        return os.EX_OK
    if options.mode is Mode.LIST:
        return manage(["--config", config, "queue", "list"])
    if options.mode is Mode.FLUSH:
        return manage(["--config", config, "queue", "flush", *options.flush])
    settings = load(config)
    if sys.stdin is None:  # it was closed by the shell
        raise StartError(os.EX_USAGE, "there is no message: standard input is closed")
    if options.mode is Mode.SMTP:
        from mailismus.sendmail.smtp_session import speak  # here: few programs speak SMTP

        def hand(sender: bytes, recipients: Sequence[bytes], message: BinaryIO, size_bytes: int) -> str:
            return send(settings, sender, recipients, message, size_bytes)[0]

        speak(settings, partial(os.read, 0), _write_all, hand)
        return os.EX_OK
    return _send(options, settings, sys.stdin.buffer)


def _send(options: SendmailOptions, settings: ProgramSettings, source: BinaryIO) -> int:
    origin = settings.sendmail.origin
    user, full_name = _user()
    own = qualify(user, origin)
    sender = own if options.sender is None else qualify(bare(os.fsencode(options.sender)), origin)
    author = author_of(options.full_name or full_name, sender or own)
    now = time.time()
    stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(now)).encode("ascii")
    identity = b"<%b.%d.%b@%b>" % (stamp, os.getpid(), os.urandom(6).hex().encode("ascii"), settings.announcehost)
    completion = Completion(author, formatdate(now, localtime=True).encode("ascii"), identity)
    if not options.recipients and not options.reads_recipients:
        raise UsageError("there are no recipients: name them, or write -t")
    message = read_message(
        source,
        completion,
        settings.maxmsgsize,
        has_dot_end=options.has_dot_end,
        reads_recipients=options.reads_recipients,
    )
    given = [one for argument in options.recipients for one in listed(os.fsencode(argument))]
    if not all(given):
        raise UsageError("a recipient is empty: write an address")
    if options.reads_recipients:
        given += message.recipients
    recipients = list(dict.fromkeys(qualify(one, origin) for one in given))
    if not recipients:
        raise StartError(os.EX_DATAERR, "the message has no recipients: neither the command line nor its header names one")
    name, is_queued = send(settings, sender, recipients, message.file, message.size_bytes)
    if options.is_verbose:
        _tell(f"queued as {name}" if is_queued else f"no server takes it now: left for its next start as {name}")
    return os.EX_OK


def _user() -> tuple[bytes, str]:
    """The name of the user who calls, and his full name."""
    try:
        known = pwd.getpwuid(os.getuid())
    except KeyError:
        return b"uid%d" % os.getuid(), ""
    return os.fsencode(known.pw_name), known.pw_gecos.partition(",")[0].replace("&", known.pw_name.capitalize())


def _tell(text: str) -> None:
    try:
        print(text, flush=True)
    except OSError:  # the message is durable: who called must not send it again
        give_up_output()


def _complain(name: str, status: int, text: str) -> int:
    if sys.stderr is None:  # print would write to standard output, which may speak SMTP
        return status
    line = shown(" ".join(text.split()).encode("utf-8", "backslashreplace"))
    try:
        print(f"{name}: {line}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass
    return status


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
