"""Answers that cost much to read, by name: those that the guard refuses, and the costliest that it still lets pass.

Made octet by octet, so that they say nothing about what dnspython writes. `benchmarks.dns_answers` measures them.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable

import attrs
from dns.message import QueryMessage
from dns.rdatatype import RdataType

from mailismus.dns.guard import UNASKED, Guard
from mailismus.dns.message import make_query

ID = 4711
RESPONSE = 0x8180
IN = 1
ROOT = b"\0"
ASKED = b"\xc0\x0c"
"""A pointer to the name of the question."""
KINDS = sorted({RdataType.MX}.union(*UNASKED))
"""The types that an answer may have."""


def name(text: str) -> bytes:
    """A name without pointers; only letters, digits and hyphens."""
    return b"".join(bytes((len(label),)) + label.encode() for label in text.split(".") if label) + ROOT


def head(
    question: str = "example.net",
    rdtype: int = RdataType.MX,
    answers: int = 0,
    authorities: int = 0,
    additional: int = 0,
    flags: int = RESPONSE,
) -> bytes:
    """The header and the question."""
    counts = struct.pack("!HHHHHH", ID, flags, 1, answers, authorities, additional)
    return counts + name(question) + struct.pack("!HH", rdtype, IN)


def record(owner: bytes, rdtype: int, data: bytes, rdclass: int = IN, ttl_s: int = 300) -> bytes:
    """One record."""
    return owner + struct.pack("!HHIH", rdtype, rdclass, ttl_s, len(data)) + data


@attrs.frozen
class Hostile:
    """One answer, to the question for `asked`."""

    wire: bytes
    asked: str = "example.net"
    rdtype: RdataType = RdataType.MX

    @property
    def query(self) -> QueryMessage:
        """The question."""
        return make_query(ID, self.asked, self.rdtype)


def _passes(one: Hostile) -> bool:
    try:
        Guard(one.wire).cut(one.rdtype)
    except ValueError:
        return False
    return True


def _most(make: Callable[[int], Hostile]) -> Hostile:
    """The largest of these that the guard lets pass."""
    low, high = 1, 1024
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _passes(make(middle)) else (low, middle - 1)
    return make(low)


def _answers(asked: str, rdtype: RdataType, of: Callable[[int], bytes]) -> Callable[[int], Hostile]:
    return lambda count: Hostile(head(asked, rdtype, count) + b"".join(map(of, range(count))), asked, rdtype)


def _mx(number: int, target: bytes = ASKED, owner: bytes = ASKED) -> bytes:
    return record(owner, RdataType.MX, struct.pack("!H", number) + target)


def _a(number: int, owner: bytes = ASKED) -> bytes:
    return record(owner, RdataType.A, struct.pack("!I", number))


def colliding_names(count: int) -> list[bytes]:
    """Names that are one for the hash of dnspython, h = 9 h + c."""
    pairs = (b"\xa1\xa7", b"\xa0\xb0")
    labels = (b"".join(chosen) for chosen in itertools.islice(itertools.product(pairs, repeat=10), count))
    return [bytes((len(label),)) + label + ROOT for label in labels]


A126, A127 = ".".join(["a"] * 126), name(".".join(["a"] * 127))
A40, LONG = ".".join(["abcde"] * 40), ".".join(["z" * 63] * 3 + ["z" * 61])
_COLLIDING = colliding_names(1024)
_OPTION = struct.pack("!HH", 18, len(A127)) + A127
"""RFC 9567: REPORT-CHANNEL, with a name."""


def _opt(data: bytes) -> bytes:
    return record(ROOT, RdataType.OPT, data, 1232, 0)


def _many_labels(count: int) -> Hostile:
    """MX records with one name of 126 labels, written once."""
    front = head(answers=count)
    place = struct.pack("!H", 0xC000 | len(front) + 14)
    return Hostile(front + _mx(0, name(A126)) + b"".join(_mx(number, place) for number in range(1, count)))


REFUSED = {
    "60 MX, 126 labels": _many_labels(60),
    "4000 MX, 126 labels": _many_labels(4000),
    "500 owners of one hash": Hostile(
        head("example.net", RdataType.A, 500) + b"".join(_a(1, owner) for owner in _COLLIDING[:500]), rdtype=RdataType.A
    ),
    "4000 A, owner root": Hostile(head(rdtype=1, answers=4000) + _a(1, ROOT) * 4000, rdtype=RdataType.A),
    "pointers in a circle": Hostile(head(answers=1) + b"\1a\xc0\x1d"),
    "a pointer to itself": Hostile(head(answers=1) + b"\xc0\x1d"),
    "HIP": Hostile(head(answers=1) + record(ASKED, 55, b"\4\2\0\4" + b"x" * 8 + name(A126) * 8)),
    "TSIG": Hostile(
        head(additional=1) + record(ROOT, RdataType.TSIG, name(A126) + b"\0" * 6 + struct.pack("!4H", 300, 0, 0, 0), 255, 0)
    ),
    "RRSIG": Hostile(head(answers=1) + record(ASKED, RdataType.RRSIG, b"\0" * 18 + A127)),
    "a type without a name": Hostile(head(answers=1) + record(ASKED, 65280, b"x")),
    "a class of its own": Hostile(head(answers=1) + record(ASKED, RdataType.MX, b"\0\1" + ASKED, 4242)),
    "A of the class CH": Hostile(head(answers=1) + record(ASKED, RdataType.A, A127 + b"\0\1", 3)),
    "OPT in the answer": Hostile(head(answers=1) + _opt(b"")),
    "SOA in the answer": Hostile(head(answers=1) + record(ASKED, RdataType.SOA, ROOT + ROOT + bytes(20))),
    "MX in the authority": Hostile(head(authorities=1) + _mx(1)),
    "NS in the additional section": Hostile(head(additional=1) + record(ASKED, RdataType.NS, ROOT)),
}
"""What the guard stops."""

PASSED = {
    "A, owner root": _most(_answers("", RdataType.A, lambda number: _a(number, ROOT))),
    "A, owner of 255 octets": _most(_answers(LONG, RdataType.A, _a)),
    "A, owners of one hash": _most(_answers("example.net", RdataType.A, lambda number: _a(1, _COLLIDING[number]))),
    "MX, root to root": _most(_answers("", RdataType.MX, lambda number: _mx(number, ROOT, ROOT))),
    "MX, the same again": _most(_answers("", RdataType.MX, lambda _: _mx(1, ROOT, ROOT))),
    "MX, 40 labels": _most(_answers(A40, RdataType.MX, lambda number: _mx(number, ASKED, ROOT))),
    "MX, 40 labels, the same again": _most(_answers(A40, RdataType.MX, lambda _: _mx(1, ASKED, ROOT))),
    "MX, 40 labels of one octet": _most(_answers(".".join("a" * 40), RdataType.MX, lambda number: _mx(number, ASKED, ROOT))),
    "MX, 255 octets": _most(_answers(LONG, RdataType.MX, lambda number: _mx(number, ASKED, ROOT))),
    "CNAME, 40 labels": _most(_answers(A40, RdataType.MX, lambda _: record(ROOT, RdataType.CNAME, ASKED))),
    "DNAME, 40 labels": _most(_answers("", RdataType.MX, lambda _: record(ROOT, RdataType.DNAME, name(".".join("a" * 40))))),
    "NS, 40 labels": _most(
        lambda count: Hostile(head(A40, authorities=count) + record(ROOT, RdataType.NS, ASKED) * count, A40)
    ),
    "SOA, 40 labels": _most(
        lambda count: Hostile(head(A40, authorities=count) + record(ROOT, RdataType.SOA, ASKED * 2 + bytes(20)) * count, A40)
    ),
    "glue": _most(lambda count: Hostile(head(additional=count) + _a(1, ROOT) * count)),
    "options with names": Hostile(head(additional=1) + _opt(_OPTION * 200)),
    "16000 empty options": Hostile(head(additional=1) + _opt(b"\xff\xfe\0\0" * 16000)),
}
"""What the guard lets pass, as large as it does."""

ORDINARY = {
    "one MX": Hostile(head(answers=1, additional=1) + _mx(10, b"\2mx" + ASKED) + _opt(b"")),
    "five MX": Hostile(
        head(answers=5, additional=1) + b"".join(_mx(number, b"\3mx%d" % number + ASKED) for number in range(5)) + _opt(b"")
    ),
    "five MX with addresses": Hostile(
        head(answers=5, additional=11)
        + b"".join(_mx(number, b"\3mx%d" % number + ASKED) for number in range(5))
        + b"".join(
            record(b"\3mx%d" % number + ASKED, rdtype, bytes(size))
            for number in range(5)
            for rdtype, size in ((RdataType.A, 4), (RdataType.AAAA, 16))
        )
        + _opt(b"")
    ),
    "two A": Hostile(head(rdtype=1, answers=2, additional=1) + _a(1) + _a(2) + _opt(b""), rdtype=RdataType.A),
    "a denial": Hostile(
        head(authorities=1, additional=1, flags=RESPONSE | 3)
        + record(ASKED, RdataType.SOA, name("ns.example.net") + name("hostmaster.example.net") + bytes(16) + b"\0\0\0\x3c")
        + _opt(b"")
    ),
}
"""What name servers say all day."""
