"""The grammar of commands: parses or refuses one line without its CRLF (RFC 5321 4.1.1).

*Rules*: the expression that well-formed lines match is tried first; the reason for a refusal is looked for afterwards. A
bare CR, LF or NUL is 500 5.5.2 at any place. One deviation is tolerated: blanks behind `FROM:` and `TO:`. Parsed values are
printable ASCII, but for addresses in UTF-8 (RFC 6531).

The newest `MAX_KNOWN` lines are known: lists of recipients come again and again, and a look-up costs a tenth of the
expression.

*Not here*: the grammar of addresses (`mail.address`), parameters of MAIL (`smtp.extensions`), the order of commands
(`smtp.server.commands`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from mailismus.mail.address import ORDINARY, is_domain, is_literal, parse_path, parse_utf8_path
from mailismus.smtp import replies
from mailismus.smtp.extensions import parse_mail_parameters

_QUOTED = rb'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_PATH = rb"(?:[!#-;=?-~]|" + _QUOTED + rb")*"
_PARAMETERS = rb"(?: +([!-~][ -~]*)?)?"

_MAIL = re.compile(rb"(?i:MAIL FROM: *)<(" + ORDINARY + rb"|)>" + _PARAMETERS).fullmatch
_MAIL_ANY_PATH = re.compile(rb"(?i:MAIL FROM: *)<(" + _PATH + rb")>" + _PARAMETERS).fullmatch
_RCPT = re.compile(rb"(?i:RCPT TO: *)<(" + ORDINARY + rb")> *").fullmatch
_RCPT_ANY_PATH = re.compile(rb"(?i:RCPT TO: *)<(" + _PATH + rb")>" + _PARAMETERS).fullmatch
_MAIL_UTF8 = re.compile(rb"(?i:MAIL FROM: *)<([^<>\0-\x1f\x7f]*)>" + _PARAMETERS).fullmatch
_RCPT_UTF8 = re.compile(rb"(?i:RCPT TO: *)<([^<>\0-\x1f\x7f]*)> *").fullmatch
_HELLO = re.compile(rb"(?i:HELO|EHLO) +([!-~]{1,255}) *").fullmatch
_FORM = {b"MAIL": re.compile(rb"(?i:MAIL FROM:).*").fullmatch, b"RCPT": re.compile(rb"(?i:RCPT TO:).*").fullmatch}

MAX_KNOWN = 1000
"""Lines of EHLO, of MAIL, and of RCPT, that are known at the same time: at most 2 KiB each
(`smtp.server.limits.MAX_LINE`)."""

UNKNOWN_NAME = b"unknown"
"""The name in a trace field if the client gave no valid one."""


@lru_cache(MAX_KNOWN)
def parse_hello(line: bytes) -> bytes | None:
    """Return the name in a HELO or EHLO line, unchanged printable ASCII; None: it has none."""
    found = _HELLO(line)
    return found[1] if found else None


def trace_name(name: bytes) -> bytes:
    """Return a client's name for a Received field: a domain or an address literal, else `unknown`."""
    return name if is_domain(name) or is_literal(name) else UNKNOWN_NAME


@lru_cache(MAX_KNOWN)
def parse_mail(line: bytes) -> tuple[bytes, int, bool, bool] | bytes:
    """Return sender (`b""`: the null reverse-path), declared size (0: none), 8BITMIME declared, SMTPUTF8 declared; or the
    reply that refuses."""
    found = _MAIL(line)
    if found is not None:
        sender = found[1]
        if found[2] is None:
            return sender, 0, False, False
    else:
        found = _MAIL_ANY_PATH(line) if line.isascii() else _MAIL_UTF8(line)
        path = (parse_path(found[1]) if line.isascii() else parse_utf8_path(found[1])) if found else None
        if found is None or path is None:
            return _refusal_of(line, b"MAIL", replies.BAD_SENDER)
        sender = path
    parameters = parse_mail_parameters(found[2] or b"")
    if isinstance(parameters, bytes):
        return parameters
    return (sender, *parameters) if parameters[2] or sender.isascii() else replies.UTF8_UNDECLARED


@lru_cache(MAX_KNOWN)
def parse_rcpt(line: bytes) -> tuple[bytes, bytes]:
    """Return the recipient and the reply that refuses; one of them is empty. `postmaster` needs no domain (RFC 5321
    4.1.1.3). With a recipient in UTF-8 comes the reply for a transaction without SMTPUTF8."""
    found = _RCPT(line)
    if found is not None:
        return found[1], b""
    if not line.isascii():
        found = _RCPT_UTF8(line)
        path = parse_utf8_path(found[1]) if found else None
        return (path, replies.UTF8_UNDECLARED) if path else (b"", _refusal_of(line, b"RCPT", replies.BAD_RECIPIENT))
    found = _RCPT_ANY_PATH(line)
    path = found and (found[1] if found[1].lower() == b"postmaster" else parse_path(found[1]))
    if not found or not path:
        return b"", _refusal_of(line, b"RCPT", replies.BAD_RECIPIENT)
    return (b"", replies.UNKNOWN_PARAMETER) if found[2] else (path, b"")


def is_alone(line: bytes) -> bool:
    """Whether a verb of four letters has no argument (RFC 5321 4.1.1: trailing blanks are tolerated)."""
    return not line[4:].strip(b" ")


def has_bad_bytes(line: bytes) -> bool:
    """Whether the line has a bare CR, a bare LF or a NUL."""
    return b"\r" in line or b"\n" in line or b"\0" in line


def _refusal_of(line: bytes, verb: bytes, bad_address: bytes) -> bytes:
    if has_bad_bytes(line):
        return replies.BAD_BYTES
    return bad_address if _FORM[verb](line) else replies.BAD_ARGUMENT
