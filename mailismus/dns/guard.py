"""The guard: what an answer may cost, checked in one pass before dnspython reads it (pure). Why: decisions/0021.

*Rules*: at most `MAX_LABELS` labels in a name, and `MAX_STEPS` steps: labels (also the root), pointers, and for each record
the owners it may be compared with. No record that nobody asked for. Only OPT is read of the additional section, bare.
"""

from __future__ import annotations

import struct

from dns.rdataclass import RdataClass
from dns.rdatatype import RdataType, to_text

from mailismus.dns.name import MAX_LABELS

MAX_STEPS = 1000
UNASKED = ({RdataType.CNAME, RdataType.DNAME}, {RdataType.NS, RdataType.SOA}, {RdataType.A, RdataType.AAAA, RdataType.OPT})
"""By section, what comes with an answer of any type: aliases, the zone of a denial, addresses of the hosts that it names."""
_NAMES = {RdataType.MX: (2,), RdataType.CNAME: (0,), RdataType.DNAME: (0,), RdataType.NS: (0,), RdataType.SOA: (0, 0)}
"""Octets before each name in the data."""


class Guard:
    """One pass over a message with one question. `steps`: so far, and those that its counts make certain."""

    def __init__(self, wire: bytes) -> None:
        answers, authorities = struct.unpack_from("!6x2H", wire)
        self._wire = wire
        self.steps: int = answers + authorities  # an owner each: too many cost no pass

    def cut(self, rdtype: RdataType) -> bytes:
        """What is to be read of an answer for this type. Raises ValueError with the reason, IndexError or struct.error."""
        wire, owners, options, position = self._wire, set[bytes](), list[bytes](), self._pass_name(12) + 4
        for count, kinds in zip(struct.unpack_from("!6x3H", wire), (UNASKED[0] | {rdtype}, *UNASKED[1:]), strict=True):
            end = position
            for _ in range(count):
                start, position = position, self._pass_name(position)
                kind, rdclass, length = struct.unpack_from("!HH4xH", wire, position)
                if kind not in kinds or (rdclass != RdataClass.IN and kind != RdataType.OPT):
                    raise ValueError(f"a record that nobody asked for ({to_text(kind)}, class {rdclass})")
                if kind == RdataType.OPT:
                    options.append(wire[start : position + 8] + b"\0\0")
                elif kinds is not UNASKED[2]:
                    owners.add(wire[start:position])
                    self.steps += len(owners) - 1
                name, position = position + 10, position + 10 + length
                for gap in _NAMES.get(kind, ()):
                    name = self._pass_name(name + gap)
        return wire[:10] + len(options).to_bytes(2, "big") + wire[12:end] + b"".join(options)

    def _pass_name(self, position: int) -> int:
        end = labels = 0
        while labels <= MAX_LABELS and self.steps < MAX_STEPS:
            self.steps += 1
            length = self._wire[position]
            if length >= 0xC0:
                end, position = end or position + 2, (length & 0x3F) << 8 | self._wire[position + 1]
            elif length:
                labels, position = labels + 1, position + 1 + length
            else:
                return end or position + 1
        raise ValueError(f"more than {MAX_LABELS} labels of a name, or {MAX_STEPS} steps")
