"""Reports as text and JSON: complete, and harmless whatever a host says."""

from __future__ import annotations

import json

import attrs
import pytest

from mailismus.config.values.tls import TlsLevel
from mailismus.probe.certificate import CertificateFacts
from mailismus.probe.render import MAX_SHOWN, host_json, host_lines, last_lines, way_lines
from mailismus.probe.report import HostReport, ProbeVerdict, TlsFacts, Way, judge

NOW = 1_790_000_000.0
WAY = Way("c.example", "the mail hosts of the domain (MX)", TlsLevel.VERIFY, "<tls> in line 9", "c.example")
CERTIFICATE = CertificateFacts(
    "CN=mx.c.example", "CN=Some CA", ("mx.c.example",), 2, NOW - 86400, NOW + 42 * 86400, "EC, secp256r1", "AB:CD"
)
GOOD = HostReport(
    *("mx.c.example", "192.0.2.1", 25, 10),
    has_answered=True,
    greeting=b"220 mx.c.example ESMTP",
    offers=(b"PIPELINING", b"STARTTLS"),
    starttls=b"220 2.0.0 go on",
    tls=TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384 (256 bits)", (CERTIFICATE,)),
    offers_under_tls=(b"PIPELINING", b"AUTH PLAIN SCRAM-SHA-256"),
    mechanisms=(b"PLAIN", b"SCRAM-SHA-256"),
    reached=TlsLevel.VERIFY,
)
NO_TLS = HostReport(
    *("mx.c.example", "192.0.2.1", 25, 10),
    has_answered=True,
    greeting=b"220 a\n220 b",
    offers=(b"PIPELINING",),
    reached=TlsLevel.NONE,
    trouble=b"451 4.7.4 TLS is required, but was not offered by host H (<tls> in line 9)",
)
NO_SESSION = HostReport("mx.c.example", "2001:db8::1", 25, 10, trouble=b"451 4.4.1 connect to H failed: No route to host")
NASTY = b"\x1b]0;x\x07\xc2\x9b2J\r\n\xe2\x80\xae" * 100_000


def test_a_host_that_shows_all_is_told_whole() -> None:
    assert [*way_lines(WAY), *host_lines(GOOD, WAY, NOW)] == [
        "c.example",
        "  route:          the mail hosts of the domain (MX)",
        "  demanded:       verify, by <tls> in line 9",
        "  names:          c.example (at verify)",
        "",
        "mx.c.example[192.0.2.1]:25, preference 10",
        "  greeting:       220 mx.c.example ESMTP",
        "  offers:         PIPELINING, STARTTLS",
        "  STARTTLS:       220 2.0.0 go on",
        "  protocol:       TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256 bits)",
        "  certificate 1:  CN=mx.c.example",
        "    issuer:       CN=Some CA",
        "    names:        mx.c.example and 2 more",
        "    dates:        from 2026-09-20; ends 2026-11-02, in 42 days",
        "    key:          EC, secp256r1",
        "    SHA-256:      AB:CD",
        "  under TLS:      PIPELINING, AUTH PLAIN SCRAM-SHA-256",
        "  AUTH:           PLAIN SCRAM-SHA-256",
        "  level:          verify: TLS with a certificate that was verified",
        "  mail:           goes here (verify)",
    ]


def test_it_is_told_why_no_mail_goes() -> None:
    lines = list(host_lines(NO_TLS, WAY, NOW))
    assert lines[2:4] == ["  greeting:       220 a", "                  220 b"]
    assert lines[-2:] == [
        "  level:          none: no TLS",
        "  mail:           does not go here: 451 4.7.4 TLS is required, but was not offered by host H (<tls> in line 9)",
    ]
    assert list(host_lines(NO_SESSION, WAY, NOW))[2] == "  level:          unknown: no session"


def test_it_is_told_why_the_level_is_not_higher() -> None:
    report = attrs.evolve(GOOD, reached=TlsLevel.ENCRYPT, not_higher=b"Server certificate not verified: is for a, not b")
    lines = list(host_lines(report, attrs.evolve(WAY, level=TlsLevel.OPPORTUNISTIC), NOW))
    assert lines[-3:] == [
        "  level:          encrypt: TLS, and the certificate was not verified",
        "  not higher:     Server certificate not verified: is for a, not b",
        "  mail:           goes here (opportunistic)",
    ]


def test_json_has_all_of_it() -> None:
    found = json.loads(host_json(GOOD, WAY))
    assert (found["host"], found["level"], found["demanded"], found["trouble"]) == ("mx.c.example", "verify", "verify", "")
    assert found["chain"][0]["not_after"] == int(NOW + 42 * 86400)
    assert json.loads(host_json(NO_SESSION, WAY))["level"] is None


def test_a_hostile_host_is_escaped_and_cut() -> None:
    certificate = attrs.evolve(
        CERTIFICATE, subject=NASTY.decode(), issuer=NASTY.decode(), names=(NASTY.decode(),), begins_at=None
    )
    report = HostReport(
        *(NASTY.decode(), "192.0.2.1", 25, 10),
        greeting=NASTY[:5000],
        offers=(NASTY, NASTY),
        starttls=NASTY[:5000],
        tls=TlsFacts("TLSv1.3", "X", (certificate,)),
        offers_under_tls=(NASTY,),
        mechanisms=(NASTY,),
        reached=TlsLevel.ENCRYPT,
        not_higher=NASTY,
    )
    lines = [*host_lines(report, WAY, NOW), host_json(report, WAY)]
    assert [line for line in lines if not line.isprintable()] == []
    assert max(map(len, lines)) < 40 * MAX_SHOWN
    assert any(line.endswith("can't be read") for line in lines)


@pytest.mark.parametrize(
    ("reports", "verdict"),
    [
        ([GOOD], ProbeVerdict.GOOD),
        ([GOOD, NO_SESSION], ProbeVerdict.GOOD),
        ([NO_SESSION], ProbeVerdict.SILENT),
        ([GOOD, NO_TLS], ProbeVerdict.MISSED),
        ([NO_SESSION, NO_TLS], ProbeVerdict.MISSED),
        ([attrs.evolve(NO_SESSION, has_answered=True)], ProbeVerdict.MISSED),
    ],
)
def test_hosts_that_do_not_answer_count_only_without_others(reports: list[HostReport], verdict: ProbeVerdict) -> None:
    assert judge(reports) is verdict


def test_the_last_line_says_to_how_many_addresses_mail_would_go() -> None:
    ends = [list(last_lines(reports))[-1] for reports in ([GOOD], [NO_TLS], [GOOD, NO_TLS], [NO_TLS, NO_TLS])]
    assert ends == [
        "1 address; mail would go to it",
        "1 address; mail would not go to it",
        "2 addresses; mail would go to 1",
        "2 addresses; mail would go to none",
    ]
