"""Situations of the domain name system, and what becomes of mail in each: the zone that a fake name server plays, the
domain, and the hosts or the outcome.

    python -m tests.scenarios.dns_table             prints what our resolver makes of each
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.epollreactor import EPollReactor

from mailismus.dns.addresses import Loopback
from mailismus.dns.choice import Fallback, MxHost, MxPolicy
from mailismus.dns.client import DnsClient
from mailismus.dns.mx import MxResolver
from mailismus.dns.servers import NameServer
from mailismus.mail.outcome import Outcome, OutcomeKind
from tests.fakes.dnsserver import FakeNameServer
from tests.fakes.reactors import close_reactor

PATIENT_S, SHORT_S = 20.0, 0.25
"""Time-outs: where an answer comes, and where none does."""
LIMIT_S = 60.0
DEAD_PORT = 9
"""Nobody listens there."""

DELIVERABLE, TEMPORARY, PERMANENT = "deliverable", "temporary", "permanent"


POLICY = MxPolicy(own_names=frozenset({"own.example"}), own_endpoints=frozenset({("192.0.2.99", 25)}))


@attrs.frozen
class Situation:
    """One row. `expected`: hosts as `name address..`, or kind, enhanced status and a part of the text. `dead`, `silent`:
    name servers asked before it, where nobody listens, and that never answer; -1: and it itself is not asked. `first`: the
    zone of a name server that is asked before it and disagrees with it."""

    title: str
    zone: str
    expected: tuple[str, ...]
    domain: str = "d.example"
    policy: MxPolicy = POLICY
    timeout_s: float = PATIENT_S
    silent: int = 0
    dead: int = 0
    first: str = ""
    asked_by_tcp: bool = False
    any_order: bool = False


MX = "d.example MX 10 m1.example\nm1.example A 192.0.2.1\nm1.example AAAA 2001:db8::1\n"
HOST = ("m1.example 192.0.2.1 2001:db8::1",)
NO_FALLBACK = MxPolicy(fallback=Fallback.NONE)
LOCAL = MxPolicy(loopback=Loopback.ALLOWED)


def chain(length: int, name: str = "d.example") -> str:
    """CNAME records one after the other, the last to `end.example`."""
    names = [name, *(f"c{number}.example" for number in range(1, length)), "end.example"]
    return "".join(f"{one} CNAME {other}\n" for one, other in itertools.pairwise(names))


def later(text: str, enhanced: str = "4.4.3") -> tuple[str, ...]:
    """Expected: DEFERRED."""
    return TEMPORARY, enhanced, text


def never(enhanced: str, text: str) -> tuple[str, ...]:
    """Expected: FAILED."""
    return PERMANENT, enhanced, text


SITUATIONS = (
    Situation("one MX host with both families", MX, HOST),
    Situation(
        "hosts by preference",
        "d.example MX 20 m2.example\nd.example MX 5 m3.example\nm2.example A 192.0.2.2\nm3.example A 192.0.2.3\n" + MX,
        ("m3.example 192.0.2.3", *HOST, "m2.example 192.0.2.2"),
    ),
    Situation(
        "equal preferences in any order",
        "d.example MX 10 m2.example\nm2.example A 192.0.2.2\n" + MX,
        ("m2.example 192.0.2.2", *HOST),
        any_order=True,
    ),
    Situation("a domain in UTF-8", "xn--bcher-kva.example MX 10 m1.example\n" + MX, HOST, domain="Bücher.example"),
    Situation("a domain that IDNA forbids", "", never("5.1.2", "is no domain"), domain="a‮b.example"),
    Situation("a domain that can't be one", "", never("5.1.2", "-x.example is no domain"), domain="-x.example"),
    Situation("no MX, but an address", "d.example A 192.0.2.1\n", ("d.example 192.0.2.1",)),
    Situation("no MX, but an IPv6 address", "d.example AAAA 2001:db8::1\n", ("d.example 2001:db8::1",)),
    Situation(
        "no MX, but an address, and no fallback",
        "d.example A 192.0.2.1\n",
        never("5.4.4", "no MX for d.example, and its address is not to be used"),
        policy=NO_FALLBACK,
    ),
    Situation("neither MX nor address", "d.example TXT x\n", never("5.1.2", "no MX or address for d.example")),
    Situation("NXDOMAIN", "", never("5.1.2", "no MX or address for d.example: NXDOMAIN from 127.0.0.1:")),
    Situation("NXDOMAIN without SOA", "d.example * !nxdomain\nd.example * !no-soa\n", never("5.1.2", "NXDOMAIN")),
    Situation("no answer for MX, though there is an address", "d.example MX !servfail\nd.example A 192.0.2.1\n", later("")),
    Situation("null MX", "d.example MX 0 .\nd.example A 192.0.2.1\n", never("5.1.10", "null MX")),
    Situation("null MX beside others", "d.example MX 0 .\n" + MX, HOST),
    Situation("own name is the only MX", "d.example MX 10 OWN.example\n", never("5.4.6", "circle")),
    Situation("own name is the best MX", "d.example MX 5 own.example\n" + MX, never("5.4.6", "circle")),
    Situation("own name as bad as another", "d.example MX 10 own.example\n" + MX, never("5.4.6", "circle")),
    Situation("own name behind another", "d.example MX 20 own.example\nd.example MX 30 x.example\n" + MX, HOST),
    Situation("own address is the only MX", "d.example MX 10 m.example\nm.example A 192.0.2.99\n", never("5.4.6", "circle")),
    Situation("own address behind another", "d.example MX 20 m.example\nm.example A 192.0.2.99\n" + MX, HOST),
    Situation("own name by an alias", "d.example MX 10 m.example\nm.example CNAME own.example\n", never("5.4.6", "circle")),
    Situation(
        "own name, and nobody knows a better host now",
        "d.example MX 5 x.example\nx.example * !servfail\nd.example MX 9 own.example\n",
        later("SERVFAIL"),
    ),
    Situation("SERVFAIL", "d.example MX !servfail\n", later("SERVFAIL from 127.0.0.1:")),
    Situation("REFUSED", "d.example MX !refused\n", later("REFUSED from 127.0.0.1:")),
    Situation("FORMERR", "d.example MX !formerr\n", later("FORMERR from 127.0.0.1:")),
    Situation("SERVFAIL for every host", "d.example MX 10 x.example\nx.example * !servfail\n", later("no address for")),
    Situation("SERVFAIL for one host", "d.example MX 5 x.example\nx.example * !servfail\n" + MX, HOST),
    Situation(
        "SERVFAIL for AAAA alone",
        "m.example AAAA !servfail\nd.example MX 1 m.example\nm.example A 192.0.2.1\n",
        ("m.example 192.0.2.1",),
    ),
    Situation("SERVFAIL for AAAA, and no A", "m.example AAAA !servfail\nd.example MX 1 m.example\n", later("SERVFAIL")),
    Situation("no answer at all", "d.example MX !drop\n", later("no answer from 127.0.0.1:"), timeout_s=SHORT_S),
    Situation(
        "no answer for the hosts", "d.example MX 1 m.example\nm.example * !drop\n", later("no answer"), timeout_s=SHORT_S
    ),
    Situation("a lost datagram", "d.example MX !drop-first 1\n" + MX, HOST, timeout_s=2.0),
    Situation("a slow answer", "d.example MX !delay 0.2\n" + MX, HOST),
    Situation("a server without EDNS", "d.example MX !no-edns\n" + MX, HOST),
    Situation("a referral in place of an answer", "d.example MX !referral\n", later("a referral")),
    Situation("nobody listens at the name server", MX, later("can't be reached: Connection refused"), dead=1, silent=-1),
    Situation("twenty dead name servers before a live one", MX, HOST, dead=20),
    Situation("three silent name servers before a live one", MX, HOST, silent=3, timeout_s=2.0),
    Situation("truncated, and whole by TCP", "d.example MX !truncate\n" + MX, HOST, asked_by_tcp=True),
    Situation(
        "truncated, and TCP hangs",
        "d.example MX !tcp-hang\n" + MX,
        later("no answer by TCP"),
        timeout_s=SHORT_S,
        asked_by_tcp=True,
    ),
    Situation(
        "truncated, and TCP is closed", "d.example MX !tcp-close\n" + MX, later("its connection failed"), asked_by_tcp=True
    ),
    Situation(
        "truncated, and half of it by TCP",
        "d.example MX !tcp-half\n" + MX,
        later("no answer by TCP"),
        timeout_s=SHORT_S,
        asked_by_tcp=True,
    ),
    Situation(
        "more records than a datagram holds",
        "".join(f"d.example MX {number} a-rather-long-name-of-a-host-{number}.example\n" for number in range(1, 100))
        + "a-rather-long-name-of-a-host-1.example A 192.0.2.1\n"
        + "d.example MX !truncate\n",
        ("a-rather-long-name-of-a-host-1.example 192.0.2.1",),
        asked_by_tcp=True,
    ),
    Situation("answers with a wrong id", "d.example MX !wrong-id\n" + MX, later("no answer"), timeout_s=SHORT_S),
    Situation("answers to another question", "d.example MX !wrong-question\n" + MX, later("no answer"), timeout_s=SHORT_S),
    Situation(
        "questions in place of answers", "d.example MX !no-response-bit\n" + MX, later("no answer"), timeout_s=SHORT_S
    ),
    Situation("answers from another port", "d.example MX !other-port\n" + MX, later("no answer"), timeout_s=SHORT_S),
    Situation("a few forged answers before the true one", "d.example MX !forge 5\n" + MX, HOST),
    Situation("many forged answers before the true one", "d.example MX !forge 100\n" + MX, HOST, asked_by_tcp=True),
    Situation("an answer with the addresses of the hosts", "d.example MX !glue\n" + MX, HOST),
    Situation("an answer that says it is secure", "d.example * !ad\n" + MX, HOST),
    Situation("a record that nobody asked for", "d.example MX !unasked\n" + MX, later("nobody asked for (TXT")),
    Situation("an answer with a name of 126 labels", "d.example MX !labels\n" + MX, later("more than 40 labels")),
    Situation("a domain of 41 labels", "", later("no name that can be asked for"), domain=".".join(["a"] * 41)),
    Situation("an answer that is garbage", "d.example MX !garbage\n" + MX, later("can't be read")),
    Situation("a name that points at itself", "d.example MX !loop\n" + MX, later("can't be read")),
    Situation(
        "a domain that is an alias", "d.example CNAME e.example\ne.example MX 10 m1.example\n" + MX.split("\n", 1)[1], HOST
    ),
    Situation("an alias of what does not exist", "d.example CNAME e.example\n", never("5.1.2", "NXDOMAIN")),
    Situation(
        "an alias of a host without MX", "d.example CNAME e.example\ne.example A 192.0.2.1\n", ("e.example 192.0.2.1",)
    ),
    Situation("eight aliases", chain(8) + "end.example A 192.0.2.1\n", ("end.example 192.0.2.1",)),
    Situation("nine aliases", chain(9) + "end.example A 192.0.2.1\n", later("more than 8 CNAME records")),
    Situation(
        "aliases one by one",
        "d.example * !bare-cname\nc1.example * !bare-cname\n" + chain(2) + "end.example A 192.0.2.1\n",
        ("end.example 192.0.2.1",),
    ),
    Situation(
        "nine aliases one by one",
        "".join(f"{name} * !bare-cname\n" for name in ("d.example", *(f"c{number}.example" for number in range(1, 9))))
        + chain(9)
        + "end.example A 192.0.2.1\n",
        later("more than 8 CNAME records"),
    ),
    Situation("aliases in a circle", "d.example * !circle\n", later("circle")),
    Situation(
        "aliases in a circle, one by one",
        "d.example * !bare-cname\ne.example * !bare-cname\nd.example CNAME e.example\ne.example CNAME d.example\n",
        later("more than 8 CNAME records"),
    ),
    Situation(
        "an MX host that is an alias",
        "d.example MX 1 a.example\na.example CNAME b.example\nb.example A 192.0.2.1\n",
        ("a.example 192.0.2.1",),
    ),
    Situation("an MX host that is an alias of itself", "d.example MX 1 a.example\na.example * !circle\n", later("circle")),
    Situation(
        "MX hosts that do not exist",
        "d.example MX 1 a.example\nd.example MX 2 b.example\nd.example A 192.0.2.1\n",
        never("5.4.4", "a.example: NXDOMAIN"),
    ),
    Situation("MX hosts without addresses", "d.example MX 1 a.example\na.example TXT x\n", never("5.4.4", "no A record")),
    Situation("an MX host that does not exist beside one that does", "d.example MX 1 a.example\n" + MX, HOST),
    Situation("an MX host that is an address as text", "d.example MX 1 192.0.2.1\n", never("5.4.4", "NXDOMAIN")),
    Situation(
        "thirty hosts",
        "".join(f"d.example MX {n} h{n}.example\nh{n}.example A 192.0.2.{n}\n" for n in range(1, 31)),
        tuple(f"h{n}.example 192.0.2.{n}" for n in range(1, 21)),
    ),
    *(
        Situation(
            f"an MX host at {address}",
            f"d.example MX 1 a.example\na.example {'AAAA' if ':' in address else 'A'} {address}\n",
            never("5.4.4", "where no mail is sent"),
        )
        for address in (
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.1.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.1.1",
        )
    ),
    *(
        Situation(
            f"an MX host at {address}, allowed",
            f"d.example MX 1 a.example\na.example {'AAAA' if ':' in address else 'A'} {address}\n",
            (f"a.example {address}",),
            policy=LOCAL,
        )
        for address in ("127.0.0.1", "::1")
    ),
    Situation(
        "an MX host at 169.254.1.1, this host allowed",
        "d.example MX 1 a.example\na.example A 169.254.1.1\n",
        never("5.4.4", "where no mail is sent"),
        policy=LOCAL,
    ),
    Situation(
        "a good address beside a refused one",
        "d.example MX 1 a.example\na.example A 127.0.0.1\na.example A 192.0.2.5\n",
        ("a.example 192.0.2.5",),
    ),
    *(
        Situation(f"a first name server that says {act}, and one that knows", MX, HOST, first=MX + f"d.example * !{act}\n")
        for act in ("servfail", "refused", "formerr", "referral", "lame", "garbage", "loop", "unasked", "labels")
    ),
    *(
        Situation(f"a first name server that says {act} for the host alone", MX, HOST, first=MX + f"m1.example * !{act}\n")
        for act in ("servfail", "refused", "referral", "lame")
    ),
    Situation("a first name server whose TCP is closed", MX, HOST, first=MX + "d.example * !tcp-close\n"),
    Situation("a first name server that forges", MX, HOST, first=MX + "d.example * !wrong-id\n", timeout_s=1.0),
    Situation(
        "a first name server that says NXDOMAIN: its word is final", MX, never("5.1.2", "NXDOMAIN"), first=". SOA x\n"
    ),
    Situation(
        "a first name server that knows another alias, where nothing is",
        MX,
        never("5.1.2", "NXDOMAIN"),
        first="d.example CNAME other.example\n",
    ),
    Situation(
        "a first name server that knows the alias alone, and not what it leads to",
        "d.example CNAME e.example\ne.example MX 10 m1.example\nm1.example A 192.0.2.1\n",
        ("m1.example 192.0.2.1",),
        first="d.example CNAME e.example\nd.example * !bare-cname\ne.example * !lame\nm1.example * !servfail\n",
    ),
    Situation(
        "aliases in a circle over two name servers",
        "d.example * !servfail\ne.example * !bare-cname\ne.example CNAME d.example\n",
        later("more than 8 CNAME records"),
        first="e.example * !servfail\nd.example * !bare-cname\nd.example CNAME e.example\n",
    ),
    Situation("every name server is lame", "d.example * !lame\n", later("no recursion"), first="d.example * !lame\n"),
    Situation("an address literal", "", ("192.0.2.1 192.0.2.1",), domain="[192.0.2.1]"),
    Situation("an IPv6 address literal", "", ("2001:db8::1 2001:db8::1",), domain="[IPv6:2001:db8::1]"),
    Situation(
        "an address literal of this host", "", never("5.1.2", "no address that mail is sent to"), domain="[127.0.0.1]"
    ),
    Situation("an address literal where we listen", "", never("5.4.6", "circle"), domain="[192.0.2.99]"),
)


@attrs.frozen
class Played:
    """What came of one situation."""

    result: tuple[MxHost, ...] | Outcome
    server: FakeNameServer
    again: tuple[MxHost, ...] | Outcome
    """The same, asked a second time."""
    asked_again: int
    """Questions that the second time cost."""
    counters: Any


def play(situation: Situation) -> Played:
    """Play it on a reactor of its own."""
    reactor: Any = EPollReactor()  # type: ignore[no-untyped-call]  # Twisted has no annotation here
    fake = FakeNameServer(reactor, situation.zone)
    silent = [FakeNameServer(reactor, "* * !drop\n. * !drop\n") for _ in range(situation.silent)]
    first = [FakeNameServer(reactor, situation.first)] if situation.first else []
    for one in silent:
        one.zone.acts_for = lambda name, rdtype: {"drop": ""}  # type: ignore[method-assign]  # whatever is asked
    servers = [NameServer("127.0.0.1", DEAD_PORT)] * min(1, situation.dead) + [NameServer("127.0.0.2", DEAD_PORT)] * (
        situation.dead > 1
    )
    servers += [NameServer("127.0.0.1", one.port) for one in [*first, *silent]]
    servers += [NameServer("127.0.0.1", fake.port)] if situation.silent >= 0 else []
    client = DnsClient(reactor, lambda: servers, situation.timeout_s, random.SystemRandom(), reactor.seconds)
    resolver = MxResolver(client, situation.policy, reactor, random.Random(1))
    results: list[Any] = []
    asked: list[int] = []

    async def ask() -> None:
        for _ in range(2):
            results.append(await resolver.locate(situation.domain))
            asked.append(fake.asked.total())
        for one in (fake, *first, *silent):
            one.close()
        client.close()
        reactor.callLater(0.01, reactor.stop)

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(ask()).addErrback(results.append))
    guard = reactor.callLater(LIMIT_S, reactor.stop)
    reactor.run(installSignalHandlers=False)
    if guard.active():
        guard.cancel()
    assert len(asked) == 2, results
    left = [reader for reader in reactor.getReaders() if reader is not reactor.waker]
    assert not left, left
    assert not reactor.getDelayedCalls()
    close_reactor(reactor)
    return Played(results[0], fake, results[1], asked[1] - asked[0], client.counters)


def shown(result: tuple[MxHost, ...] | Outcome) -> tuple[str, ...]:
    """As in `Situation.expected`, with the whole text."""
    if isinstance(result, Outcome):
        kind = PERMANENT if result.kind is OutcomeKind.FAILED else TEMPORARY
        return kind, result.reply.enhanced.decode(), result.reply.text.decode()
    return tuple(" ".join((host.name, *host.addresses)) for host in result)


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(prog="python -m tests.scenarios.dns_table", description="Print the table.").parse_args()
    for situation in SITUATIONS:
        result = play(situation).result
        if isinstance(result, Outcome):
            status = "deferred" if result.kind is OutcomeKind.DEFERRED else "bounced"
            line = f"relay=none, dsn={result.reply.enhanced.decode()}, status={status} ({bytes(result.reply).decode()})"
        else:
            line = "tries " + ", then ".join(shown(result))
        sys.stdout.write(f"{situation.title}: {line}\n")


if __name__ == "__main__":
    main()
