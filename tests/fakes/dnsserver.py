"""A name server that plays what it is told, over real UDP and TCP sockets on 127.0.0.1.

A zone is text, a line for each record or each act:

    # NAME           TYPE  DATA or !ACT
    example.net      MX    10 mx1.example.net
    mx1.example.net  A     127.0.0.2
    alias.example    CNAME example.net
    broken.example   *     !servfail
    slow.example     MX    !delay 2

Names are absolute, with or without the dot at the end; `*` stands for every type. A name that no line names does not exist
(NXDOMAIN); one that has lines for other types alone has no such record. Both come with an SOA record. CNAME records are
followed as a recursive server does. An act changes what is done with the answer that the records give:

    !nxdomain !servfail !refused !formerr   this answer, whatever records there are
    !drop            no answer
    !delay SECONDS   later
    !fail-first N    SERVFAIL to the first N questions, then the records
    !drop-first N    no answer to the first N questions, then the records
    !truncate        nothing but the TC bit by UDP, all of it by TCP
    !tcp-hang        as before, and no answer by TCP
    !tcp-close       as before, and the TCP connection is closed
    !tcp-half        as before, and half of the answer by TCP
    !wrong-id !wrong-question !no-response-bit      forged answers alone
    !forge N         N forged answers before the true one
    !other-port      the true answer from another port
    !garbage         bytes that are no message behind a sound header and question
    !loop            a name whose compression points at itself
    !no-soa          a denial without an SOA record
    !no-edns         FORMERR to whoever uses EDNS
    !bare-cname      the CNAME record alone, not what it leads to
    !circle          CNAME records that go in a circle, in one message
    !referral        NS records of somebody else in place of an answer
    !lame            nothing at all, from a server that offers no recursion
    !ad              the AD flag, if it was asked for
    !glue            the addresses of the hosts too, in the additional section
    !unasked         a TXT record too, which nobody asked for
    !labels          a record too with a name of 126 labels

By hand: python -m tests.fakes.dnsserver ZONEFILE --port N
"""

from __future__ import annotations

import argparse
import socket
import struct
import sys
from collections import Counter
from pathlib import Path

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IReactorTCP, IReactorTime, IReactorUDP
from twisted.internet.protocol import DatagramProtocol, Protocol, ServerFactory

TTL_S = 300
LABELS = "a." * 126
SOA = "ns.invalid. hostmaster.invalid. 1 7200 900 1209600 60"
MAX_CHAIN = 12
RCODES = {"nxdomain": 3, "servfail": 2, "refused": 5, "formerr": 1}
BY_TCP = ("truncate", "tcp-hang", "tcp-close", "tcp-half")

Query = dns.message.Message
Acts = dict[str, str]


class FakeReactor(IReactorUDP, IReactorTCP, IReactorTime):
    """What is asked of the reactor."""


class Zone:
    """What the server knows and does."""

    def __init__(self, text: str) -> None:
        self.records: dict[tuple[dns.name.Name, str], list[str]] = {}
        self.acts: dict[tuple[dns.name.Name, str], Acts] = {}
        self.names: set[dns.name.Name] = set()
        for line in text.splitlines():
            words = line.partition("#")[0].split(None, 2)
            if not words:
                continue
            name, rdtype, data = dns.name.from_text(words[0].lower()), words[1].upper(), words[2].strip()
            self.names.add(name)
            if data.startswith("!"):
                act, _, argument = data[1:].partition(" ")
                self.acts.setdefault((name, rdtype), {})[act] = argument.strip()
            else:
                self.records.setdefault((name, rdtype), []).append(_absolute(rdtype, data))

    def acts_for(self, name: dns.name.Name, rdtype: str) -> Acts:
        """The acts for a question."""
        return self.acts.get((name, "*"), {}) | self.acts.get((name, rdtype), {})

    def answer(self, query: Query, acts: Acts) -> dns.message.Message:
        """The true answer."""
        response = dns.message.make_response(query, recursion_available=True)
        question = query.question[0]
        name, rdtype = question.name, dns.rdatatype.to_text(question.rdtype)
        rcode = next((RCODES[act] for act in acts if act in RCODES), None)
        if rcode is not None and rcode != RCODES["nxdomain"]:
            response.set_rcode(dns.rcode.Rcode(rcode))
            return response
        if "circle" in acts:
            response.answer.append(_rrset(name, "CNAME", ["one.invalid."]))
            response.answer.append(_rrset(dns.name.from_text("one.invalid."), "CNAME", [name.to_text()]))
            return response
        if "referral" in acts:
            response.authority.append(_rrset(name.parent(), "NS", ["ns.elsewhere.invalid."]))
            return response
        if "lame" in acts:
            response.flags &= ~dns.flags.RA
            return response
        if "ad" in acts:
            response.flags |= query.flags & dns.flags.AD
        for _ in range(MAX_CHAIN):
            alias = self.records.get((name, "CNAME"))
            if alias is None or rdtype == "CNAME" or rcode is not None:
                break
            response.answer.append(_rrset(name, "CNAME", alias))
            if "bare-cname" in acts:
                return response
            name = dns.name.from_text(alias[0])
        found = self.records.get((name, rdtype)) if rcode is None else None
        if found:
            response.answer.append(_rrset(name, rdtype, found))
            self._add(response, name, rdtype, found, acts)
            return response
        if rcode is not None or name not in self.names:
            response.set_rcode(dns.rcode.NXDOMAIN)
        if "no-soa" not in acts:
            response.authority.append(_rrset(dns.name.root, "SOA", [SOA]))
        return response

    def _add(self, response: dns.message.Message, name: dns.name.Name, rdtype: str, found: list[str], acts: Acts) -> None:
        """What some acts add to an answer."""
        if "unasked" in acts:
            response.answer.append(_rrset(name, "TXT", ["hello"]))
        if "labels" in acts:
            response.answer.append(_rrset(name, "CNAME", [LABELS]))
        if "glue" in acts:
            hosts = [dns.name.from_text(text.split()[1].lower()) for text in found]
            for host, kind in ((host, kind) for host in hosts for kind in ("A", "AAAA") if (host, kind) in self.records):
                response.additional.append(_rrset(host, kind, self.records[host, kind]))


def _absolute(rdtype: str, data: str) -> str:
    return data + "." if rdtype in ("MX", "CNAME", "NS") and not data.endswith(".") else data


def _rrset(name: dns.name.Name, rdtype: str, texts: list[str]) -> dns.rrset.RRset:
    return dns.rrset.from_text(name, TTL_S, "IN", rdtype, *texts)


class FakeNameServer:
    """The server. `asked` counts (name, type, transport); `sources` are the clients' UDP ports, `ids` their ids."""

    def __init__(self, reactor: FakeReactor, zone_text: str, port: int = 0) -> None:
        self.reactor = reactor
        self.zone = Zone(zone_text)
        self.asked: Counter[tuple[str, str, str]] = Counter()
        self.sources: list[int] = []
        self.ids: list[int] = []
        self.connections: set[_Stream] = set()
        self._first: Counter[tuple[str, str]] = Counter()
        for tries_left in range(9, -1, -1):
            self._tcp = reactor.listenTCP(port, _Streams(self), interface="127.0.0.1")
            self.port: int = self._tcp.getHost().port  # type: ignore[attr-defined]  # an IPv4Address has one
            try:
                self._udp = reactor.listenUDP(self.port, _Datagrams(self), "127.0.0.1", 8192)
                break
            except CannotListenError:  # that port is free for TCP alone
                self._tcp.stopListening()
                if port or not tries_left:
                    raise

    @property
    def address(self) -> str:
        """As in `<dns servers>`."""
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        """The ports are free again in the next turn."""
        self._tcp.stopListening()
        self._udp.stopListening()
        for connection in [*self.connections]:
            connection.transport.abortConnection()  # type: ignore[union-attr]  # a TCP transport has it

    def note(self, query: Query, transport: str) -> tuple[str, str]:
        """Count a question."""
        question = query.question[0]
        key = question.name.to_text(omit_final_dot=True), dns.rdatatype.to_text(question.rdtype)
        self.asked[*key, transport] += 1
        self.ids.append(query.id)
        return key

    def reply(self, query: Query, key: tuple[str, str]) -> tuple[dns.message.Message | None, Acts]:
        """The answer, if there shall be one, and the acts that are left to play."""
        question = query.question[0]
        name = dns.name.from_text(question.name.to_text().lower())
        acts = self.zone.acts_for(name, key[1])
        response = self.zone.answer(query, acts)
        for act in ("fail-first", "drop-first"):
            if act in acts and self._first[key] < int(acts[act]):
                self._first[key] += 1
                if act == "drop-first":
                    return None, acts
                response = dns.message.make_response(query)
                response.set_rcode(dns.rcode.SERVFAIL)
        if "no-edns" in acts and query.edns >= 0:
            response = dns.message.make_response(query)
            response.set_rcode(dns.rcode.FORMERR)
            response.use_edns(-1)
        return (None if "drop" in acts else response), acts


class _Datagrams(DatagramProtocol):
    noisy = False

    def __init__(self, server: FakeNameServer) -> None:
        self._server = server

    def datagramReceived(self, datagram: bytes, addr: tuple[str, int]) -> None:
        """Play one question."""
        query = dns.message.from_wire(datagram)
        self._server.sources.append(addr[1])
        response, acts = self._server.reply(query, self._server.note(query, "UDP"))
        if response is not None:
            self._server.reactor.callLater(float(acts.get("delay", 0)), self._send, query, response, acts, addr)

    def _send(self, query: Query, response: dns.message.Message, acts: Acts, addr: tuple[str, int]) -> None:
        if self.transport is None:
            return
        wire = response.to_wire(max_size=65535)
        head = wire[:2] + b"\x81\x80" + b"\0\1\0\1\0\0\0\0" + query.question[0].name.to_wire()  # type: ignore[operator]
        head += struct.pack("!HH", query.question[0].rdtype, 1)
        forged = bytes((wire[0] ^ 0x55, wire[1] ^ 0xAA)) + wire[2:]
        if "other-port" in acts:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                other.sendto(wire, addr)
            return
        for _ in range(int(acts.get("forge", 0))):
            self.transport.write(forged, addr)
        if any(act in acts for act in BY_TCP):
            cut = dns.message.make_response(query)
            cut.flags |= dns.flags.TC
            wire = cut.to_wire()
        elif "wrong-id" in acts:
            wire = forged
        elif "no-response-bit" in acts:
            wire = wire[:2] + bytes((wire[2] & 0x7F,)) + wire[3:]
        elif "wrong-question" in acts:
            wire = wire[:13] + bytes((wire[13] ^ 1,)) + wire[14:]
        elif "garbage" in acts:
            wire = head + b"\xff" * 40
        elif "loop" in acts:
            wire = (
                head + b"\xc0" + bytes((len(head),)) + struct.pack("!HHIH", query.question[0].rdtype, 1, 60, 4) + b"\0\0\0\0"
            )
        self.transport.write(wire, addr)


class _Streams(ServerFactory):
    noisy = False

    def __init__(self, server: FakeNameServer) -> None:
        self._server = server

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        """Twisted's."""
        return _Stream(self._server)


class _Stream(Protocol):
    def __init__(self, server: FakeNameServer) -> None:
        self._server = server
        self._received = b""

    def connectionMade(self) -> None:
        """Twisted's."""
        self._server.connections.add(self)

    def connectionLost(self, reason: object = None) -> None:
        """Twisted's."""
        self._server.connections.discard(self)

    def dataReceived(self, data: bytes) -> None:
        """Play the questions that are whole."""
        self._received += data
        while len(self._received) >= 2 and len(self._received) >= 2 + int.from_bytes(self._received[:2], "big"):
            size = 2 + int.from_bytes(self._received[:2], "big")
            query, self._received = dns.message.from_wire(self._received[2:size]), self._received[size:]
            response, acts = self._server.reply(query, self._server.note(query, "TCP"))
            assert self.transport is not None
            if "tcp-close" in acts:
                self.transport.loseConnection()
            elif response is not None and "tcp-hang" not in acts:
                wire = response.to_wire(max_size=65535)
                whole = len(wire).to_bytes(2, "big") + wire
                self.transport.write(whole[: len(whole) // 2] if "tcp-half" in acts else whole)


def main(arguments: list[str] | None = None) -> None:
    """Serve a zone file until stopped."""
    from twisted.internet import reactor

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zonefile", type=Path)
    parser.add_argument("--port", type=int, default=5353)
    options = parser.parse_args(arguments)
    server = FakeNameServer(reactor, options.zonefile.read_text(), options.port)  # type: ignore[arg-type]  # it has them all
    print(f"serving {options.zonefile} at {server.address}", file=sys.stderr)
    reactor.run()


if __name__ == "__main__":
    main()
