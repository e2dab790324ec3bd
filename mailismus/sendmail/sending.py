"""Handing a message over: to the running server, or into the drop directory. Blocks.

*Rules*: what the server refuses for good ends with its reason. In every other case the message goes into the drop directory:
no server, a busy one, a full disk of the queue, a connection that breaks. If it breaks behind the message's end the message
may come twice: that is better than never. On return the message is durable in one of the two.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import BinaryIO, NoReturn

from mailismus.admin.client.server import ServerSource, open_server
from mailismus.admin.protocol.injecting import MOST_ADDRESS_BYTES_OF_USERS, OBJECT_BYTES, PIECE_BYTES
from mailismus.config.values.settings import ProgramSettings
from mailismus.errors import StartError
from mailismus.observe.text import shown
from mailismus.sendmail.drop import drop_message
from mailismus.sendmail.places import socket_path
from mailismus.sendmail.users import find_users
from mailismus.smtp.grammar import parse_mail, parse_rcpt

_FINAL = frozenset({os.EX_USAGE, os.EX_DATAERR, os.EX_NOPERM})
_BAD = re.compile(rb"[\0\r\n<>]").search


def send(
    settings: ProgramSettings, sender: bytes, recipients: Sequence[bytes], message: BinaryIO, size_bytes: int
) -> tuple[str, bool]:
    """Hand over the message of this size, from its first byte on. Return its id in the queue and True, or its name in the
    drop directory and False. Raises `StartError`."""
    check_envelope(settings, sender, recipients)
    rootpath = settings.sendmail.rootpath
    server = _find_server(rootpath)
    if server is not None:
        try:
            return server.inject(sender, recipients, iter(lambda: message.read(PIECE_BYTES), b"")), True
        except StartError as error:
            if error.status in _FINAL:
                raise
        finally:
            server.close()
    message.seek(0)
    return drop_message(rootpath, sender, recipients, message, size_bytes), False


def check_envelope(settings: ProgramSettings, sender: bytes, recipients: Sequence[bytes]) -> None:
    """Refuse what the server would refuse, as far as that is known here. Raises `StartError` (64, 65, 77)."""
    sendmail = settings.sendmail
    try:
        own = os.stat(sendmail.rootpath).st_uid
    except OSError:
        own = 0
    if not find_users(sendmail, own).may(os.getuid()):
        raise StartError(
            os.EX_NOPERM, f"messages of uid {os.getuid()} are not taken: <deny> or <allow> of <sendmail> keeps them out"
        )
    if 0 < settings.maxrecips < len(recipients):
        raise StartError(os.EX_DATAERR, f"there are {len(recipients)} recipients, and {settings.maxrecips} are the limit")
    if sum(len(recipient) + OBJECT_BYTES for recipient in recipients) > MOST_ADDRESS_BYTES_OF_USERS:
        raise StartError(os.EX_DATAERR, "the addresses of the recipients are too long, all together")
    if sender and (_BAD(sender) or isinstance(parse_mail(b"MAIL FROM:<%b> SMTPUTF8" % sender), bytes)):
        raise StartError(os.EX_USAGE, f"<{shown(sender)}> can't be a sender")
    for recipient in recipients:
        if _BAD(recipient) or not parse_rcpt(b"RCPT TO:<%b>" % recipient)[0]:
            raise StartError(os.EX_USAGE, f"<{shown(recipient)}> can't be a recipient")


def _find_server(rootpath: str) -> ServerSource | None:
    """The running server; None: there is none, or it can't be reached."""
    try:
        return open_server(socket_path(rootpath), _no_counter)
    except StartError:
        return None


def _no_counter(name: str) -> NoReturn:
    raise LookupError(name)
