"""The grammar of commands: one line without its CRLF, taken apart or refused (RFC 5321 4.1.1).

*Rules*: the one match that hits for well-formed lines comes first; why a line is refused is looked into afterwards. A
bare CR, LF or NUL is 500 5.5.2 wherever it stands. One thing is tolerated: blanks behind `FROM:` and `TO:`.
What is taken apart holds printable ASCII alone.

*Not here*: the addresses' own grammar (`mail.address`), MAIL's parameters (`smtp.extensions`), whether a command fits in
where it comes (`smtp.server`).
"""

from __future__ import annotations

import re

from mailismus.mail.address import ORDINARY, is_domain, is_literal, parse_path
from mailismus.smtp import replies
from mailismus.smtp.extensions import parse_mail_parameters

_QUOTED = rb'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_PATH = rb"(?:[!#-;=?-~]|" + _QUOTED + rb")*"
_PARAMETERS = rb"(?: +([!-~][ -~]*)?)?"

_MAIL = re.compile(rb"(?i:MAIL FROM: *)<(" + ORDINARY + rb"|)>" + _PARAMETERS).fullmatch
_MAIL_ANY_PATH = re.compile(rb"(?i:MAIL FROM: *)<(" + _PATH + rb")>" + _PARAMETERS).fullmatch
_RCPT = re.compile(rb"(?i:RCPT TO: *)<(" + ORDINARY + rb")> *").fullmatch
_RCPT_ANY_PATH = re.compile(rb"(?i:RCPT TO: *)<(" + _PATH + rb")>" + _PARAMETERS).fullmatch
_HELLO = re.compile(rb"(?i:HELO|EHLO) +([!-~]{1,255}) *").fullmatch
_FORM = {b"MAIL": re.compile(rb"(?i:MAIL FROM:).*").fullmatch, b"RCPT": re.compile(rb"(?i:RCPT TO:).*").fullmatch}

UNKNOWN_NAME = b"unknown"
"""What stands in a trace field for a client that gives no name that could be one."""


def parse_hello(line: bytes) -> bytes | None:
    """The name that a HELO or EHLO line gives, printable ASCII as it is; None if it gives none."""
    found = _HELLO(line)
    return found[1] if found else None


def trace_name(name: bytes) -> bytes:
    """A client's name as it may stand in a Received field: a domain or an address literal, else `unknown`."""
    return name if is_domain(name) or is_literal(name) else UNKNOWN_NAME


def parse_mail(line: bytes) -> tuple[bytes, int, bool] | bytes:
    """Sender (`b""`: the null reverse-path), declared size (0: none), 8BITMIME declared; or the reply that refuses."""
    found = _MAIL(line)
    if found is not None:
        sender = found[1]
        if found[2] is None:
            return sender, 0, False
    else:
        found = _MAIL_ANY_PATH(line)
        path = parse_path(found[1]) if found else None
        if found is None or path is None:
            return _why_refused(line, b"MAIL", replies.BAD_SENDER)
        sender = path
    parameters = parse_mail_parameters(found[2] or b"")
    return parameters if isinstance(parameters, bytes) else (sender, *parameters)


def parse_rcpt(line: bytes) -> tuple[bytes, bytes]:
    """The recipient and the reply that refuses, one of them empty. The bare `postmaster` is one (RFC 5321 4.1.1.3)."""
    found = _RCPT(line)
    if found is not None:
        return found[1], b""
    found = _RCPT_ANY_PATH(line)
    path = found and (found[1] if found[1].lower() == b"postmaster" else parse_path(found[1]))
    if not found or not path:
        return b"", _why_refused(line, b"RCPT", replies.BAD_RECIPIENT)
    return (b"", replies.UNKNOWN_PARAMETER) if found[2] else (path, b"")


def is_alone(line: bytes) -> bool:
    """Whether nothing but blanks stands behind a verb of four letters (RFC 5321 4.1.1: trailing blanks are tolerated)."""
    return not line[4:].strip(b" ")


def has_bad_bytes(line: bytes) -> bool:
    """Whether a bare CR, a bare LF or a NUL stands in the line."""
    return b"\r" in line or b"\n" in line or b"\0" in line


def _why_refused(line: bytes, verb: bytes, bad_address: bytes) -> bytes:
    if has_bad_bytes(line):
        return replies.BAD_BYTES
    return bad_address if _FORM[verb](line) else replies.BAD_ARGUMENT
