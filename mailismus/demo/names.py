"""The name server of the playground: it knows the mail hosts of its domains, and no other name."""

from __future__ import annotations

from collections.abc import Mapping

import dns.exception
import dns.message
import dns.rrset
from dns.rcode import Rcode
from dns.rdatatype import RdataType
from twisted.internet.protocol import DatagramProtocol

TTL_S = 60


class DemoNames(DatagramProtocol):
    """Answers by UDP. `hosts`: the mail host of each domain, and its address."""

    def __init__(self, hosts: Mapping[str, tuple[str, str]]) -> None:
        self._hosts = hosts
        self._addresses = dict(hosts.values())

    def datagramReceived(self, datagram: bytes, addr: tuple[str, int]) -> None:
        """Answer a question; what is none gets no answer."""
        answer = self.answer(datagram)
        if answer is not None and self.transport is not None:
            self.transport.write(answer, addr)

    def answer(self, datagram: bytes) -> bytes | None:
        """The answer to a datagram; None: it is no question."""
        try:
            query = dns.message.from_wire(datagram)
            (question,) = query.question
            response = dns.message.make_response(query, recursion_available=True)
        except (dns.exception.DNSException, ValueError):
            return None
        name = question.name.to_text(omit_final_dot=True).lower()
        if name in self._hosts and question.rdtype == RdataType.MX:
            self._add(response, question, f"10 {self._hosts[name][0]}.")
        elif name in self._addresses and question.rdtype == RdataType.A:
            self._add(response, question, self._addresses[name])
        elif name not in self._hosts and name not in self._addresses:
            response.set_rcode(Rcode.NXDOMAIN)
        return response.to_wire()

    def _add(self, response: dns.message.Message, question: dns.rrset.RRset, text: str) -> None:
        response.answer.append(dns.rrset.from_text(question.name, TTL_S, question.rdclass, question.rdtype, text))
