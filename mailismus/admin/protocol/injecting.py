"""What a program that injects a message says over the admin socket, and what its end means for it.

Behind the request `{"protocol": 2, "verb": "inject", "filter": [SENDER]}` the client goes on: `{"recipient": ADDRESS}` once
for each, then the message in order, `{"piece": BASE64}` each, and at last `{"end": true}`. The server answers
`{"id": SPID}`, which says that the message is durable, and `{"end": true}`; or an error at any time. A connection that
closes before the client's end leaves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from mailismus.admin.protocol.wire import Refusal, WireError, encode
from mailismus.mail.injected import Injected
from mailismus.observe.text import shown

INJECT = "inject"
PIECE_BYTES = 24 << 10
"""Bytes of one piece, at most: a line of them fits into a request's."""
MOST_ADDRESS_BYTES = 8 << 20
"""All recipients together, before they are checked."""
MOST_ADDRESS_BYTES_OF_USERS = 2 << 20
"""The same at a socket that every user may connect to."""
OBJECT_BYTES = 64
"""What an address in memory takes beside its bytes, about."""

_LONGEST = 300
"""Characters of an address that are told."""
_SYNTAX = (b"501", b"553", b"500", b"555")


def encode_recipient(address: bytes) -> bytes:
    """One recipient, as a line."""
    return encode({"recipient": address.decode("latin-1")})


def decode_recipient(value: Mapping[str, object]) -> bytes:
    """The recipient that `encode_recipient` wrote. Raises `WireError`."""
    address = value.get("recipient")
    if not isinstance(address, str):
        raise WireError("a recipient is a text")
    try:
        return address.encode("latin-1")
    except UnicodeEncodeError:
        raise WireError("a recipient is bytes") from None


def encode_injected(name: str) -> bytes:
    """The id of a message that is durable, as a line."""
    return encode({"id": name})


def decode_injected(value: Mapping[str, object]) -> str:
    """The id that `encode_injected` wrote. Raises `WireError`."""
    name = value.get("id")
    if not isinstance(name, str):
        raise WireError("the server does not say under which id it has the message")
    return name


def refusal_of(injected: Injected) -> Refusal:
    """Exit code and text for a refused message: 64 an address that is none, 65 what will never be accepted, 75 all else."""
    reply = injected.reply
    said = reply[:-2].decode("ascii", "backslashreplace")
    what = shown(injected.what)
    text = f"<{what if len(what) <= _LONGEST else what[:_LONGEST] + '...'}>: {said}" if what else said
    if reply.startswith(_SYNTAX) and injected.what:
        return Refusal(os.EX_USAGE, text)
    if reply[:1] == b"5" or reply.startswith(b"452 4.5.3"):  # too many recipients: there is no second transaction
        return Refusal(os.EX_DATAERR, text)
    return Refusal(os.EX_TEMPFAIL, text)
