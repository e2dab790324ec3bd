"""Odd addresses, replies and contents, and the fixtures that all contract tests share."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from mailismus.mail.reply import Reply
from tests.contracts.bench import Bench
from tests.contracts.harness import QueueHarness

ODD_ADDRESSES = (
    *(b'"%c"@d.example' % byte for byte in range(32, 127) if byte not in b'"\\'),
    *(b'"\\%c"@d.example' % byte for byte in range(32, 127)),
    *(b"x%cy@d.example" % byte for byte in range(128, 256)),
    b'""@d.example',
    b"-@-",
    b"-",
    b"%@%20.example",
    b"a%41@[IPv6:2001:db8::1]",
    "grüße@dürfte.example".encode(),
    b"MiXeD@CaSe.Example",
    b"postmaster",
    b'" "@[192.0.2.1]',
    b"a" * 64 + b"@" + b"b" * 63 + b"." + b"c" * 63 + b"." + b"d" * 61,
    b"x%0A@d.example",
)
"""Every byte the grammar may let through somewhere, and what a text format may trip over."""

ODD_REPLIES = (
    Reply(451, b"", b""),
    Reply(451, b"4.0.0", b"-"),
    Reply(451, b"4.0.0", b" two  spaces "),
    Reply(450, b"4.2.0", bytes(byte for byte in range(256) if 32 <= byte < 127 or byte >= 160)),
    Reply(451, b"4.7.1", b"%25 100% %0A"),
    Reply(451, b"4.7.1", "später".encode()),
    Reply(0, b"4.4.1", b"(connect to mx.example[192.0.2.1]:25: Connection refused)"),
    Reply(999, b"4.123.456", b"x" * 1000),
)


def letter(number: int, size: int) -> bytes:
    """A content of about `size` bytes that compresses badly and has a line end at its end."""
    return random.Random(number).randbytes(size).replace(b"\r", b"r").replace(b"\n", b"n") + b"\r\n"


class Contract:
    """Fixtures. A provider's test module brings `harness`."""

    @pytest.fixture
    def harness(self) -> Iterator[QueueHarness]:
        raise NotImplementedError("a provider's test module brings it")

    @pytest.fixture
    def bench(self, harness: QueueHarness) -> Iterator[Bench]:
        bench = Bench(harness, harness.make())
        yield bench
        harness.close()
