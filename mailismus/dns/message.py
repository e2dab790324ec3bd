"""The message: a question as bytes, and the check of a response (pure).

*Rules*: a message without our id, our question and the response bit is ignored. A response must be entirely well-formed, or
nothing of it counts. A denial counts only from a server that offers recursion, has authority or sends an SOA record: the
empty answer of a lame server must not bounce mail. Aliases are followed inside the answer section, `MAX_ALIASES` of them;
records of other names are ignored. Time and memory are linear in the size of a message.

*Weakness*: no DNSSEC: an answer is as trustworthy as the name server and the path to it.

*Not here*: sockets (`attempt`), aliases over several messages (`client`). RFC 1035 4, RFC 2308, RFC 6891.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator

import attrs

from mailismus.dns.answer import Answer, Exchange, RecordType, Status
from mailismus.dns.name import BadName, NameReader, encode_name

PAYLOAD = 1232
"""Bytes of a datagram that we offer to take: this size is not fragmented on any usual path."""
MAX_ALIASES = 8
MAX_RECORDS = 100
"""Records kept of an answer: the first addresses, or the MX records of the lowest preferences."""
MAX_TTL_S = 3600.0
"""Longest life of an answer, so that a corrected zone is seen the same day."""
MAX_NEGATIVE_TTL_S = 300.0
FAILURE_TTL_S = 5.0
"""Life of a failure, and of a denial without an SOA record (RFC 9520 demands 1 s at least)."""

_HEADER = struct.Struct("!HHHHHH")
_RECORD = struct.Struct("!HHIH")
_IN = 1
_OPT = 41
_QR, _TC, _RD, _AA, _RA = 0x8000, 0x0200, 0x0100, 0x0400, 0x0080
_OPCODE = 0x7800
_NOERROR, _FORMERR, _NXDOMAIN, _NOTIMP = 0, 1, 3, 4
_RCODES = {1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED", 6: "YXDOMAIN", 8: "NXRRSET", 9: "NOTAUTH"}


@attrs.frozen
class Foreign:
    """A message that is no response to this question: of another question, an echo, or forged."""


@attrs.frozen
class Truncated:
    """A response that does not fit a datagram."""


@attrs.frozen
class ServerFailure:
    """An error response or an unusable one. `retry_plain`: perhaps because of EDNS (RFC 6891 7)."""

    text: str
    retry_plain: bool = False


Response = Answer | Foreign | Truncated | ServerFailure


def encode_query(query_id: int, name: str, rdtype: RecordType, payload: int = PAYLOAD) -> bytes:
    """A question for a recursive name server; `payload` 0: without EDNS. Raises `BadName`."""
    question = encode_name(name) + struct.pack("!HH", rdtype, _IN)
    opt = b"\0" + _RECORD.pack(_OPT, payload, 0, 0) if payload else b""
    return _HEADER.pack(query_id, _RD, 1, 0, 0, 1 if opt else 0) + question + opt


def read_response(wire: bytes, query_id: int, name: str, rdtype: RecordType, server: str) -> Response:
    """Parse the response to a question for `name` and `rdtype`. `server`: for texts."""
    if len(wire) < _HEADER.size:
        return Foreign()
    found_id, flags, questions, *counts = _HEADER.unpack_from(wire)
    if found_id != query_id or not flags & _QR or flags & _OPCODE:
        return Foreign()
    rcode = flags & 0xF
    names = NameReader(wire)
    position = _HEADER.size
    if questions == 1:
        try:
            asked, position = names.read(position)
            if wire[position : position + 4] != struct.pack("!HH", rdtype, _IN) or asked != name:
                return Foreign()
        except BadName:
            return Foreign()
        position += 4
    elif questions or rcode in (_NOERROR, _NXDOMAIN):
        return Foreign()
    if rcode not in (_NOERROR, _NXDOMAIN):
        return ServerFailure(f"{_RCODES.get(rcode, f'RCODE {rcode}')} from {server}", rcode in (_FORMERR, _NOTIMP))
    if flags & _TC:
        return Truncated()
    try:
        sections = _read_sections(wire, names, position, counts)
    except (BadName, struct.error, ValueError):
        return ServerFailure(f"an answer that can't be read from {server}")
    if sections.extended_rcode:
        return ServerFailure(f"RCODE {sections.extended_rcode << 4 | rcode} from {server}", retry_plain=True)
    return _judge(sections, name, rdtype, flags, server)


@attrs.define
class _Sections:
    """The relevant parts of a well-formed message. `records`: of the answer section, by name and type."""

    records: dict[tuple[str, int], list[tuple[float, str | Exchange]]] = attrs.Factory(dict)
    negative_ttl_s: float | None = None
    is_referral: bool = False
    extended_rcode: int = 0


def _read_sections(wire: bytes, names: NameReader, position: int, counts: list[int]) -> _Sections:
    found = _Sections()
    for section, owner, rdtype, ttl, start, end in _read_records(wire, names, position, counts):
        if rdtype == _OPT:
            found.extended_rcode = ttl >> 24 if section == 2 else 0
            continue
        ttl_s = 0.0 if ttl > 0x7FFFFFFF else float(ttl)  # RFC 2181 8
        if section == 0:
            record = _read_record(wire, names, rdtype, start, end)
            if record is not None:
                found.records.setdefault((owner, rdtype), []).append((ttl_s, record))
        elif section == 1 and rdtype == RecordType.SOA:
            _, after = names.read(start)
            _, after = names.read(after)
            if after + 20 != end:
                raise ValueError("an SOA record of a wrong length")
            (minimum,) = struct.unpack_from("!16xI", wire, after)
            found.negative_ttl_s = min(ttl_s, float(minimum), MAX_NEGATIVE_TTL_S)
        elif section == 1 and rdtype == RecordType.NS:
            found.is_referral = True
    return found


def _read_records(
    wire: bytes, names: NameReader, position: int, counts: list[int]
) -> Iterator[tuple[int, str, int, int, int, int]]:
    """Section, owner, type, TTL field, and start and end of the data, of each record of class IN, and of OPT."""
    for section, count in enumerate(counts):
        for _ in range(count):
            owner, position = names.read(position)
            rdtype, rdclass, ttl, length = _RECORD.unpack_from(wire, position)
            start = position + _RECORD.size
            position = start + length
            if position > len(wire):
                raise ValueError("a record beyond the end")
            if rdclass == _IN or rdtype == _OPT:
                yield section, owner, rdtype, ttl, start, position


def _read_record(wire: bytes, names: NameReader, rdtype: int, start: int, end: int) -> str | Exchange | None:
    """An address, a host's name, an MX record; None: of another type."""
    match rdtype:
        case RecordType.A:
            return str(ipaddress.IPv4Address(wire[start:end]))
        case RecordType.AAAA:
            return str(ipaddress.IPv6Address(wire[start:end]))
        case RecordType.CNAME:
            target, after = names.read(start)
        case RecordType.MX:
            target, after = names.read(start + 2)
        case _:
            return None
    if after != end:
        raise ValueError("a record that is longer or shorter than what it holds")
    return target if rdtype == RecordType.CNAME else Exchange(int.from_bytes(wire[start : start + 2], "big"), target)


def _judge(found: _Sections, name: str, rdtype: RecordType, flags: int, server: str) -> Answer | ServerFailure:
    ttl_s = MAX_TTL_S
    passed = {name}
    final = name
    while (final, RecordType.CNAME) in found.records:
        alias_ttl_s, target = found.records[final, RecordType.CNAME][0]
        ttl_s = min(ttl_s, alias_ttl_s)
        final = str(target)
        if final in passed:
            return failed(name, f"the CNAME records of {name} go in a circle (from {server})")
        passed.add(final)
        if len(passed) > MAX_ALIASES + 1:
            return failed(name, f"more than {MAX_ALIASES} CNAME records one after the other for {name} (from {server})")
    aliases = len(passed) - 1
    records = found.records.get((final, rdtype), [])
    is_denied = flags & 0xF == _NXDOMAIN
    # A lame server: it asked no other server, and does not claim the zone as its own.
    proves_nothing = found.negative_ttl_s is None and not flags & (_AA | _RA)
    if records and is_denied:
        return ServerFailure(f"records with NXDOMAIN from {server}")
    if records:
        ttl_s = min(ttl_s, min(one for one, _ in records))
        exchanges = tuple(sorted((one for _, one in records if isinstance(one, Exchange)), key=lambda one: one.preference))
        addresses = tuple(one for _, one in records if isinstance(one, str))
        text = f"{rdtype.name} record from {server}"
        return Answer(Status.FOUND, final, ttl_s, text, addresses[:MAX_RECORDS], exchanges[:MAX_RECORDS], aliases)
    negative_ttl_s = min(ttl_s, FAILURE_TTL_S if found.negative_ttl_s is None else found.negative_ttl_s)
    if proves_nothing and (is_denied or not aliases):
        return ServerFailure(f"an empty answer from {server}, which offers no recursion")
    if is_denied:
        return Answer(Status.NO_NAME, final, negative_ttl_s, f"NXDOMAIN from {server}", aliases=aliases)
    if found.negative_ttl_s is None:
        if aliases:
            return Answer(Status.ALIAS, final, ttl_s, f"CNAME record from {server}", aliases=aliases)
        if found.is_referral and not flags & _AA:
            return ServerFailure(f"a referral in place of an answer from {server}")
    text = f"no {rdtype.name} record, said by {server}"
    return Answer(Status.NO_RECORDS, final, negative_ttl_s, text, aliases=aliases)


def failed(name: str, text: str) -> Answer:
    """An answer that says why the look-up failed."""
    return Answer(Status.FAILED, name, FAILURE_TTL_S, text)
