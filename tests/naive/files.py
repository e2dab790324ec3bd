"""The files of the naive queue: one a message, `SPID.mail`; its first line is the envelope, the rest the content."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import attrs

from mailismus.disk.interface import IDisk
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId

SUFFIX = ".mail"
NEW_SUFFIX = ".tmp"


@attrs.frozen
class StoredMail:
    """What a file says."""

    spool_id: SpoolId
    envelope: Envelope
    received_at: float
    content: bytes


def write_mail(disk: IDisk, root: str, mail: StoredMail) -> None:
    """Write a message's file. Raises `OSError`."""
    envelope = mail.envelope
    head = {
        "sender": envelope.sender.decode("latin-1"),
        "recipients": [recipient.decode("latin-1") for recipient in envelope.recipients],
        "client": envelope.client.decode("latin-1"),
        "eightbit": envelope.eightbit,
        "dots": envelope.stuffed_dots,
        "received_at": mail.received_at,
    }
    path = os.path.join(root, f"{mail.spool_id:016X}")
    file = disk.create(path + NEW_SUFFIX)
    file.write_at(0, [json.dumps(head).encode() + b"\n", mail.content])
    file.sync()
    file.close()
    disk.rename(path + NEW_SUFFIX, path + SUFFIX)


def remove_mail(disk: IDisk, root: str, spool_id: SpoolId) -> None:
    """Remove a message's file. Raises `OSError`."""
    disk.unlink(os.path.join(root, f"{spool_id:016X}{SUFFIX}"))


def read_mails(disk: IDisk, root: str) -> Iterator[StoredMail]:
    """All messages, in the order of their names. Raises `OSError`, `ValueError`."""
    for name in sorted(disk.list_directory(root)):
        if not name.endswith(SUFFIX):
            continue
        file = disk.open(os.path.join(root, name))
        first, _, content = file.read_at(0, file.size()).partition(b"\n")
        file.close()
        head = json.loads(first)
        envelope = Envelope(
            head["sender"].encode("latin-1"),
            tuple(recipient.encode("latin-1") for recipient in head["recipients"]),
            head["client"].encode("latin-1"),
            head["eightbit"],
            head["dots"],
        )
        yield StoredMail(SpoolId(int(name.removesuffix(SUFFIX), 16)), envelope, head["received_at"], content)
