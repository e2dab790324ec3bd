"""A queue of chunks filled with one barrier for all: `python -m benchmarks.chunk_filling DIRECTORY MESSAGES`.

Each message has 4 KiB and one recipient, was tried once, is preprocessed, and is due in some hours: so its files are as the
server leaves them, but for the order in which they were made. For `benchmarks.start_flatness --built DIRECTORY`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from array import array
from collections.abc import Sequence
from pathlib import Path

from benchmarks.queue_builder import DOMAIN, REPLY, SIZE_BYTES, content
from mailismus.chunks.generator import process_generator
from mailismus.disk.posix import PosixDisk
from mailismus.mail.attempts import DEFERRED, PastAttempt, with_attempt
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.mark import Mark, write_mark
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.chunk.format.files import format_envelope, format_info
from mailismus.queue.providers.chunk.format.version import FORMATS, IDS, INFO, NAME, REMOTE
from mailismus.queue.providers.chunk.recovery.directories import ensure_directories
from mailismus.queue.providers.chunk.recovery.due_times import write_due_times
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from mailismus.queue.providers.chunk.write.epochs import format_epoch
from mailismus.queue.providers.chunk.write.mess import MessWriters

EPOCH, SPLIT = 7, 23
HOST = b"127.0.0.1[127.0.0.1]:25"


def fill(root: str, messages: int, due_in_s: float) -> None:
    """Make the queue in this directory."""
    disk, now = PosixDisk(), time.time()
    ensure_directories(disk, root, SPLIT)
    queue = ChunkDirectories(disk, root, SPLIT)
    writers = MessWriters(queue, process_generator(), lambda: now)
    numbers = array("Q")
    tried = PastAttempt(1, int(now), DEFERRED, int(due_in_s), b"", HOST, REPLY.code, REPLY.enhanced, REPLY.text)
    words = with_attempt(None, tried)
    for number in range(messages):
        data = content(number)
        writer = writers.begin()
        writer.append((data,))
        writer.finish()
        message = Message(SpoolId((EPOCH << 32) + number + 1), b"sender@from.bench.example", b"127.0.0.1", False, now,
                          SIZE_BYTES, 1, [Entry(1, b"%dbuilt@%s" % (number, DOMAIN), Area.DEFERRED, now + due_in_s, 1,
                                                REPLY, HOST, words)])  # fmt: skip
        for home, text in (
            (INFO, format_info(message)),
            (REMOTE, format_envelope(message, message.entries, ())),
        ):
            file = queue.of(home, writer.number).create(str(writer.number))
            try:
                file.write_at(0, (text,))
            finally:
                file.close()
        writer.keep()
        numbers.append(writer.number)
    write_due_times(disk, root, numbers, array("d", [now + due_in_s]) * messages)
    queue.of(IDS).create(format_epoch(EPOCH)).close()
    write_mark(disk, root, Mark(NAME, FORMATS[-1]))
    queue.close()
    disk.sync_file_system(root)


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chunk_filling")
    parser.add_argument("directory", type=Path, help="a new one, for `start_flatness --built`")
    parser.add_argument("messages", type=int)
    parser.add_argument("--due-in", type=float, default=14400.0, help="seconds until they are due")
    options = parser.parse_args(argv)
    os.umask(0o077)
    began_s = time.monotonic()
    (options.directory / "queue").mkdir(parents=True)
    fill(str(options.directory / "queue"), options.messages, options.due_in)
    print(f"{options.messages} messages in {time.monotonic() - began_s:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
