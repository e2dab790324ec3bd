"""The message: a question as bytes, and the check of a response (pure). dnspython writes and reads them.

*Rules*: a message without our id, our question and the response bit is ignored. A response must be entirely well-formed and
within the limits of the guard, or nothing of it counts. A denial counts only from a server that offers recursion, has
authority or sends an SOA record: the empty answer of a lame server must not bounce mail. Aliases are followed inside the
answer section, `MAX_ALIASES` of them; records of other names are ignored. An answer is secure if it has the AD flag, and its
server is believed about that.

*Weakness*: we verify no signature: an answer is as trustworthy as the name server and the path to it.

*Not here*: sockets (`attempt`), aliases over several messages (`client`). RFC 1035 4, RFC 2308, RFC 6840 5.7, RFC 6891.
"""

from __future__ import annotations

import struct

import attrs
import dns.message
import dns.rdata
from dns.flags import Flag
from dns.message import QueryMessage
from dns.name import Name
from dns.rcode import Rcode
from dns.rdataclass import RdataClass
from dns.rdatatype import RdataType
from dns.rdtypes.ANY.CNAME import CNAME
from dns.rdtypes.ANY.MX import MX
from dns.rdtypes.ANY.SOA import SOA
from dns.rdtypes.IN.A import A
from dns.rdtypes.IN.AAAA import AAAA
from dns.rrset import RRset

from mailismus.dns.answer import Answer, Exchange, Status
from mailismus.dns.guard import UNASKED, Guard
from mailismus.dns.name import parse_name, to_text
from mailismus.dns.servers import NameServer

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
_OPCODE = 0x7800
_RCODES = {1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED", 6: "YXDOMAIN", 8: "NXRRSET", 9: "NOTAUTH"}

for _kind in {RdataType.MX}.union(*UNASKED):  # else dnspython imports their modules with the first answer
    dns.rdata.get_rdata_class(RdataClass.IN, _kind)  # type: ignore[no-untyped-call]  # dnspython has no annotation here


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


def make_query(query_id: int, name: str, rdtype: RdataType, payload: int = PAYLOAD) -> QueryMessage:
    """A question for a recursive name server; `payload` 0: without EDNS. Raises `BadName`."""
    return _make_query(query_id, parse_name(name), rdtype, payload)


def _make_query(query_id: int, name: Name, rdtype: RdataType, payload: int) -> QueryMessage:
    flags, edns = Flag.RD | Flag.AD, 0 if payload else -1
    return dns.message.make_query(name, rdtype, id=query_id, flags=flags, use_edns=edns, payload=payload)


def encode_query(query: QueryMessage) -> bytes:
    """The bytes of a question."""
    question = query.question[0]
    # To compress names, `QueryMessage.to_wire` hashes each suffix of this one: a millisecond for 40 labels.
    wire = _make_query(query.id, dns.name.root, question.rdtype, query.request_payload).to_wire()
    return wire[: _HEADER.size] + question.name.to_digestable() + wire[_HEADER.size + 1 :]


def read_response(wire: bytes, query: QueryMessage, server: NameServer) -> Response:
    """Parse the response to a question, from this server."""
    if len(wire) < _HEADER.size:
        return Foreign()
    query_id, flags, questions, *_ = _HEADER.unpack_from(wire)
    if query_id != query.id or flags & _OPCODE or questions > 1:  # of another opcode, dnspython would import more modules
        return Foreign()
    try:
        head = dns.message.from_wire(wire, question_only=True)
    except Exception:  # whatever hostile bytes lead to in a parser that is not ours
        return Foreign()
    if not query.is_response(head):
        return Foreign()
    rcode = head.rcode()
    if rcode not in (Rcode.NOERROR, Rcode.NXDOMAIN):
        return ServerFailure(f"{_RCODES.get(rcode, f'RCODE {rcode}')} from {server}", rcode in (Rcode.FORMERR, Rcode.NOTIMP))
    if flags & Flag.TC:
        return Truncated()
    unreadable = f"an answer that can't be read from {server}"
    try:
        part = Guard(wire).cut(query.question[0].rdtype)
    except (IndexError, struct.error):
        return ServerFailure(unreadable)
    except ValueError as refused:
        return ServerFailure(f"{unreadable}: {refused}")
    try:
        message = dns.message.from_wire(part)
    except Exception:  # as above
        return ServerFailure(unreadable)
    if message.rcode() != rcode:
        return ServerFailure(f"RCODE {message.rcode()} from {server}", retry_plain=True)
    response = _judge(message, query, server)
    if isinstance(response, Answer) and flags & Flag.AD and server.is_believed:
        return attrs.evolve(response, is_secure=True)
    return response


def _judge(message: dns.message.Message, query: QueryMessage, server: NameServer) -> Answer | ServerFailure:
    name, rdtype = query.question[0].name, query.question[0].rdtype
    asked = to_text(name)
    ttl_s = MAX_TTL_S
    passed = {name}
    while alias := _find(message, name, RdataType.CNAME):
        ttl_s = min(ttl_s, alias.ttl)
        name = next(record.target for record in alias if isinstance(record, CNAME))
        if name in passed:
            return failed(asked, f"the CNAME records of {asked} go in a circle (from {server})")
        passed.add(name)
        if len(passed) > MAX_ALIASES + 1:
            return failed(asked, f"more than {MAX_ALIASES} CNAME records one after the other for {asked} (from {server})")
    final, aliases = to_text(name), len(passed) - 1
    records = _find(message, name, rdtype)
    is_denied = message.rcode() == Rcode.NXDOMAIN
    if records and is_denied:
        return ServerFailure(f"records with NXDOMAIN from {server}")
    if records:
        ttl_s = min(ttl_s, records.ttl)
        hosts = [Exchange(one.preference, to_text(one.exchange)) for one in records if isinstance(one, MX)]
        exchanges = tuple(sorted(hosts, key=lambda one: one.preference))
        addresses = tuple(one.address for one in records if isinstance(one, A | AAAA))
        text = f"{rdtype.name} record from {server}"
        return Answer(Status.FOUND, final, ttl_s, text, addresses[:MAX_RECORDS], exchanges[:MAX_RECORDS], aliases)
    denial_ttl_s = _find_denial_ttl(message)
    negative_ttl_s = min(ttl_s, FAILURE_TTL_S if denial_ttl_s is None else denial_ttl_s)
    # A lame server: it asked no other server, and does not claim the zone as its own.
    proves_nothing = denial_ttl_s is None and not message.flags & (Flag.AA | Flag.RA)
    if proves_nothing and (is_denied or not aliases):
        return ServerFailure(f"an empty answer from {server}, which offers no recursion")
    if is_denied:
        return Answer(Status.NO_NAME, final, negative_ttl_s, f"NXDOMAIN from {server}", aliases=aliases)
    if denial_ttl_s is None:
        if aliases:
            return Answer(Status.ALIAS, final, ttl_s, f"CNAME record from {server}", aliases=aliases)
        if not message.flags & Flag.AA and any(one.rdtype == RdataType.NS for one in message.authority):
            return ServerFailure(f"a referral in place of an answer from {server}")
    text = f"no {rdtype.name} record, said by {server}"
    return Answer(Status.NO_RECORDS, final, negative_ttl_s, text, aliases=aliases)


def _find(message: dns.message.Message, name: Name, rdtype: RdataType) -> RRset | None:
    return message.get_rrset(message.answer, name, RdataClass.IN, rdtype)


def _find_denial_ttl(message: dns.message.Message) -> float | None:
    """How long the SOA record lets a denial live, in seconds; None: there is none."""
    for records in message.authority:
        for soa in records:
            if isinstance(soa, SOA):
                return min(float(records.ttl), float(soa.minimum), MAX_NEGATIVE_TTL_S)
    return None


def failed(name: str, text: str) -> Answer:
    """An answer that says why the look-up failed."""
    return Answer(Status.FAILED, name, FAILURE_TTL_S, text)
