"""The command line of `sendmail` and `mailq`, as programs write it since decades (pure).

*Rules*: options end at the first address, or at `--`: an address that begins with a dash is never an option behind it.
Letters may stand together, and an argument may follow its letter at once. Options that mean nothing here are
ignored, as other servers do: who calls has often no other choice. Letters that no server knows are refused.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence

import attrs


class Mode(enum.Enum):
    """What is asked for."""

    SEND = "read a message on standard input"
    SMTP = "speak SMTP on standard input and output"
    LIST = "list the queue"
    FLUSH = "make deferred mail due"
    ALIASES = "make aliases anew; there are none"


class UsageError(ValueError):
    """The command line can't be understood; the text says why."""


@attrs.frozen
class SendmailOptions:
    """One call. `sender` None: the user who calls; `""`: the null sender. `has_dot_end`: a line that is a single dot ends
    the message. `reads_recipients`: those of the header count too. `flush`: filters of what becomes due."""

    mode: Mode = Mode.SEND
    sender: str | None = None
    full_name: str = ""
    has_dot_end: bool = True
    reads_recipients: bool = False
    is_verbose: bool = False
    config: str | None = None
    flush: tuple[str, ...] = ()
    recipients: tuple[str, ...] = ()


_MODES = {
    "m": Mode.SEND,
    "s": Mode.SMTP,
    "p": Mode.LIST,
    "i": Mode.ALIASES,
}
_REFUSED_MODES = {
    "d": "the server is started by twistd or systemd, not by sendmail",
    "D": "the server is started by twistd or systemd, not by sendmail",
    "t": "there is no test mode",
    "v": "no address is verified without a message",
    "h": "there is no directory of hosts to show",
    "H": "there is no directory of hosts to purge",
    "a": "ARPANET mode is not spoken; use -bs",
}
_WITH_ARGUMENT = "ABCDFLMNOQRVXbefhopr"
_WITH_ATTACHED = "dq"
"""Their argument follows at once, or there is none."""
_PLAIN = "GIUcimnstv"
_NOTIFY = re.compile(r"never|(?:success|failure|delay)(?:,(?:success|failure|delay))*", re.I).fullmatch
_RETURN = re.compile(r"full|hdrs", re.I).fullmatch
_ENVELOPE_ID = re.compile(r"(?:[!-*,-<>-~]|\+[0-9A-F]{2}){1,100}").fullmatch
_OTHER_NAMES = {"mailq": Mode.LIST, "newaliases": Mode.ALIASES}


def parse_options(name: str, words: Sequence[str]) -> SendmailOptions:
    """The options of a call. `name`: that of the program, without a directory. Raises `UsageError`."""
    mode = _OTHER_NAMES.get(name, Mode.SEND)
    values: dict[str, str | bool] = {}
    flush: list[str] = []
    given = list(words)
    while given and given[0].startswith("-") and given[0] != "-":
        word = given.pop(0)
        if word == "--":
            break
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            argument = ""
            if letter in _WITH_ARGUMENT:
                if not letters and not given:
                    raise UsageError(f"option -{letter} needs an argument")
                argument, letters = letters or given.pop(0), ""
            elif letter in _WITH_ATTACHED:
                argument, letters = letters, ""
            elif letter not in _PLAIN:
                raise UsageError(f"option -{letter} is not known")
            if letter == "b":
                mode = _mode_of(argument)
            elif letter == "q":
                mode = Mode.FLUSH
                flush += _flush_of(argument)
            else:
                _note(values, letter, argument)
    if mode is Mode.SEND and "I" in values:
        mode = Mode.ALIASES
    return SendmailOptions(
        mode=mode,
        sender=_sender_of(values),
        full_name=str(values.get("F", "")),
        has_dot_end="i" not in values,
        reads_recipients="t" in values,
        is_verbose="v" in values,
        config=str(values["C"]) if "C" in values else None,
        flush=tuple(flush),
        recipients=tuple(given),
    )


def _note(values: dict[str, str | bool], letter: str, argument: str) -> None:
    """Keep one option. Raises `UsageError` for a wrong argument."""
    if (letter == "o" and argument[:1] == "i") or (letter == "O" and argument.lower() in ("ignoredots", "ignoredots=true")):
        values["i"] = True
    elif letter == "N" and not _NOTIFY(argument):
        raise UsageError(f'-N is "{argument}": write never, or some of success,failure,delay')
    elif letter == "R" and not _RETURN(argument):
        raise UsageError(f'-R is "{argument}": write full or hdrs')
    elif letter == "V" and not _ENVELOPE_ID(argument):
        raise UsageError(f'-V is "{argument}": write an envelope id, up to 100 characters, as RFC 3461 has it')
    else:
        values["f" if letter == "r" else letter] = argument if letter in _WITH_ARGUMENT else True


def _sender_of(values: dict[str, str | bool]) -> str | None:
    sender = values.get("f")
    return None if sender is None else "" if sender == "<>" else str(sender)


def _mode_of(argument: str) -> Mode:
    if argument in _REFUSED_MODES:
        raise UsageError(f"-b{argument} is not available: {_REFUSED_MODES[argument]}")
    mode = _MODES.get(argument)
    if mode is None:
        raise UsageError(f"-b{argument} is not known")
    return mode


def _flush_of(argument: str) -> list[str]:
    """The filters of `-q`: an id, or a part of a recipient or sender."""
    kind, wanted = argument[:1], argument[1:]
    if not argument:
        return []
    if kind in "IRS" and wanted:
        return [wanted if kind == "I" else f"{'recipient' if kind == 'R' else 'sender'}=*{wanted}*"]
    raise UsageError(f"-q{argument} is not available: write -q, -qIID, -qRTEXT or -qSTEXT; the server retries by itself")
