"""A clustered queue made for trials: messages from nothing to 5 MB, new, deferred, bounced, held and deleted.

Contents are text as mail may have it: lines of at most 998 bytes ended by CRLF, with 8-bit bytes, empty lines, leading dots
and dots alone on a line. So a queue that was moved or repaired can also be delivered, and what arrives be compared.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Collection
from pathlib import Path

import attrs

from mailismus.disk.posix import PosixDisk
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.providers import PROVIDERS
from mailismus.queue.interface import Area, Entry, Message
from tests.clustered.harness import queue_settings

LARGEST = 5_000_000
NOW = 1_700_000_000.0
LATEST_S = 100_000.0
"""So long an entry waits at most."""
_TEXT = bytes(ord("x") if byte in b"\0\r\n" else byte for byte in range(256))
_LINE = 998
_LEADING_DOT = re.compile(rb"^\.", re.MULTILINE)


def content(number: int, size_bytes: int, chance: random.Random) -> bytes:
    """A message of about this size, as on the wire, but for the dots."""
    text = chance.randbytes(size_bytes).translate(_TEXT)
    lines, at = [b"Subject: %d" % number, b""], 0
    while at < size_bytes:
        length = chance.choice((0, 1, 60, 70, 80, _LINE))
        line = text[at : at + length]
        lines.append(b"." * length if length == 1 else line)
        at += len(line) + 2
    return b"\r\n".join(lines) + b"\r\n"


def stuffed(plain: bytes) -> bytes:
    """The content with its dots stuffed, as queues keep it."""
    return _LEADING_DOT.sub(b"..", plain)


def build(path: Path, messages: int, exponent: float, now: float = NOW, prompt: Collection[Area] = ()) -> None:
    """A clustered queue in this directory. Sizes are 5 MB * random ** `exponent`. Entries of the areas `prompt` are due at
    `now`, the others within a day or so."""
    settings = queue_settings()
    settings = attrs.evolve(
        settings, rootpath=str(path / "queue"), spool=attrs.evolve(settings.spool, rootpath=str(path / "spool"))
    )
    for root in (settings.rootpath, settings.spool.rootpath):
        os.mkdir(root, 0o700)
    builder = PROVIDERS.named("clustered").new_builder(settings, PosixDisk(), 7, now)
    builder.begin()
    chance = random.Random(2)
    for number in range(1, messages + 1):
        plain = content(number, int(LARGEST * chance.random() ** exponent), chance)
        stored = stuffed(plain)
        count = chance.choice((1, 1, 1, 2, 30))
        message = Message(
            *(SpoolId((7 << 32) + number), b"s%d@b.example" % number, b"-", True, now - number),
            *(len(plain), count, [], len(stored) - len(plain)),
        )
        for recipient in range(1, count + 1):
            if recipient != 2:
                message.entries.append(_entry(chance, recipient, now, prompt))
        builder.add(message, iter((stored,)))
    builder.finish()
    builder.close()
    PosixDisk().sync_file_system(str(path))


def _entry(chance: random.Random, number: int, now: float, prompt: Collection[Area]) -> Entry:
    area = chance.choice(tuple(Area))
    due_at = now + chance.uniform(-1000, LATEST_S) // 1
    if area in prompt:
        due_at = min(due_at, now)
    reply = None if area is Area.INCOMING else Reply(451, b"4.3.0", b"come back later %d" % number)
    attempts, host = (0, b"-") if reply is None else (number, b"mx.example[192.0.2.9]:25")
    return Entry(number, b"r%d@d%d.example" % (number, number % 5), area, due_at, attempts, reply, host)
