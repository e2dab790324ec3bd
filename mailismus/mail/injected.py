"""The end of an injection: a message of a program of this machine was accepted, or refused by a reply."""

from __future__ import annotations

import attrs


@attrs.frozen
class Injected:
    """`name`: the message's id as text; it is durable. Empty: `reply`, with its CRLF, refuses it, and `what` is the address
    that the reply is about, if it is about one."""

    name: str = ""
    reply: bytes = b""
    what: bytes = b""
