"""`mailismus tls` as a process, with servers on loopback that show good and bad TLS."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from cryptography.hazmat.primitives.hashes import SHA256

from tests.fakes.certificates import Made, Unreadable, make_certificate
from tests.probe.hosts import Host, Play, host
from tests.project.runners import environment

CONFIG = """<mailserver><application><announcehost>our.example</announcehost></application><mta><deliver>
<relays>{relays}</relays>
<client><timeout>{timeout}</timeout><timeout_connect>{timeout}</timeout_connect><mxport>{mxport}</mxport><loopback>Y</loopback>
<tls level="{level}"{cafile}/></client>
<dns servers="127.0.0.1:{dns}" timeout="20s" trustad="Y"/>
</deliver></mta></mailserver>
"""
AUTHORITY = make_certificate("authority.example")
GOOD = make_certificate("localhost", by=AUTHORITY)
EXPIRED = make_certificate("localhost", days=-2, by=AUTHORITY)
WRONG = make_certificate("other.example", by=AUTHORITY)
SELF_SIGNED = make_certificate("localhost")


def configure(
    directory: Path, level: str, mxport: int = 25, dns: int = 9, relays: str = "", timeout: str = "20s"
) -> list[str]:
    """Write a configuration. Returns the options that name it."""
    (directory / "ca.pem").write_bytes(AUTHORITY.pem)
    cafile = f' cafile="{directory}/ca.pem"' if level == "verify" else ""
    text = CONFIG.format(level=level, cafile=cafile, mxport=mxport, dns=dns, relays=relays, timeout=timeout)
    (directory / "m.xml").write_text(text)
    return ["--config", str(directory / "m.xml")]


def run(words: Sequence[str], directory: Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    arguments = [sys.executable, "-m", "mailismus", *words]
    done = subprocess.run(arguments, cwd=directory, env=environment(), capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def probe(directory: Path, play: Play, level: str, timeout: str = "20s") -> tuple[int, dict[str, Any], Host]:
    """Exit code and JSON of one host, and what it was sent."""
    with host(play) as there:
        options = configure(directory, level, timeout=timeout)
        status, out, _ = run([*options, "tls", f"localhost:{there.port}", "--json"], directory)
    (line,) = out.splitlines()
    found: dict[str, Any] = json.loads(line)
    found["label"] = f"localhost[127.0.0.1]:{there.port}"
    return status, found, there


OPPORTUNISTIC, ENCRYPT, VERIFY = "opportunistic", "encrypt", "verify"
NO_ISSUER = "Server certificate not trusted: unknown issuer (cafile names those that are trusted)"
ROWS: dict[tuple[str, str], tuple[Play, int, str, str, str]] = {
    ("good", VERIFY): (Play(GOOD), 0, "verify", "", ""),
    ("good", ENCRYPT): (Play(GOOD), 0, "encrypt", "", NO_ISSUER),
    ("good", OPPORTUNISTIC): (Play(GOOD), 0, "encrypt", "", NO_ISSUER),
    ("good", "none"): (Play(GOOD), 0, "none", "", "TLS is not used"),
    ("not offered", OPPORTUNISTIC): (Play(GOOD, is_offered=False), 0, "none", "", "TLS was not offered"),
    ("not offered", ENCRYPT): (
        *(Play(GOOD, is_offered=False), 75, "none", "451 4.7.4 TLS is required, but was not offered by host {label}"),
        "TLS is required, but was not offered by host {label}",
    ),
    ("refused", OPPORTUNISTIC): (
        *(Play(GOOD, starttls=b"454 4.7.0 not now\r\n"), 0, "none", ""),
        "host refused to start TLS: 454 4.7.0 not now",
    ),
    ("refused", VERIFY): (
        *(Play(GOOD, starttls=b"454 4.7.0 not now\r\n"), 75, "none"),
        "451 4.7.4 TLS is required, but host {label} refused to start TLS: 454 4.7.0 not now",
        "TLS is required, but host {label} refused to start TLS: 454 4.7.0 not now",
    ),
    ("old", ENCRYPT): (
        *(Play(GOOD, most=ssl.TLSVersion.TLSv1_1), 75, "none"),
        "451 4.7.5 Cannot start TLS with host {label}: ",
        "Cannot start TLS with host {label}: ",
    ),
    ("old", OPPORTUNISTIC): (
        *(Play(GOOD, most=ssl.TLSVersion.TLSv1_1), 0, "none", ""),
        "Cannot start TLS with host {label}: ",
    ),
    ("hangs", OPPORTUNISTIC): (
        *(Play(GOOD, hangs_in_handshake=True), 0, "none", ""),
        "Cannot start TLS with host {label}: timed out",
    ),
    ("expired", VERIFY): (
        *(Play(EXPIRED), 75, "encrypt", "451 4.7.5 Server certificate not trusted: certificate has expired"),
        "Server certificate not trusted: certificate has expired",
    ),
    ("self-signed", VERIFY): (
        *(Play(SELF_SIGNED), 75, "encrypt", "451 4.7.5 Server certificate not trusted: "),
        "Server certificate not trusted: ",
    ),
    ("wrong name", VERIFY): (
        *(Play(WRONG), 75, "encrypt", "451 4.7.5 Server certificate not verified: is for other.example, not localhost"),
        "Server certificate not verified: is for other.example, not localhost",
    ),
    ("wants a certificate", ENCRYPT): (
        *(Play(GOOD, wants_certificate=True), 75, "none", "451 4.7.5 Cannot start TLS with host {label}: "),
        "Cannot start TLS with host {label}: ",
    ),
    ("leaves under TLS", ENCRYPT): (
        *(Play(GOOD, under_tls=b"421 4.3.2 busy\r\n"), 75, "encrypt", "451 4.3.2 host refused the session: 421 4.3.2 busy"),
        "host refused the session: 421 4.3.2 busy",
    ),
    ("injected", OPPORTUNISTIC): (
        *(
            Play(GOOD, after_220=b"250-evil\r\n250 AUTH PLAIN\r\n"),
            75,
            "none",
            "451 4.7.0 Host {label} sent bytes behind its",
        ),
        "Host {label} sent bytes behind its",
    ),
}


@pytest.mark.parametrize(("name", "level"), ROWS)
def test_each_kind_of_host_is_told(tmp_path: Path, name: str, level: str) -> None:
    play, status, reached, trouble, not_higher = ROWS[name, level]
    found_status, found, there = probe(tmp_path, play, level, "1s" if play.hangs_in_handshake else "20s")
    assert (found_status, found["level"], found["demanded"]) == (status, reached, level)
    assert found["demanded_by"] == "<tls> in line 4"
    assert found["trouble"].startswith(trouble.format(label=found["label"]))
    assert bool(found["trouble"]) is bool(trouble)
    assert not trouble or found["trouble"].endswith(", demanded by <tls> in line 4") or "session" in trouble
    assert found["not_higher"].startswith(not_higher.format(label=found["label"]))
    assert bool(found["not_higher"]) is (reached != "verify")
    shows_tls = reached in ("encrypt", "verify")
    if not play.wants_certificate:  # TLS 1.3 tells the refusal of ours behind the handshake
        assert (found["protocol"], len(found["chain"])) == (("TLSv1.3", 1) if shows_tls else (None, 0))
    if shows_tls:
        made = play.made
        assert made is not None
        assert found["chain"][0]["not_after"] == int(made.certificate.not_valid_after_utc.timestamp())
    assert {line.split(b" ")[0] for commands in there.connections for line in commands} <= {b"EHLO", b"STARTTLS", b"QUIT"}
    assert len(there.connections) <= 2


def test_a_host_is_shown_as_text(tmp_path: Path) -> None:
    with host(Play(GOOD, issuers=(AUTHORITY,))) as there:
        options = configure(tmp_path, "verify")
        status, out, error = run([*options, "tls", f"localhost:{there.port}"], tmp_path)
    assert (status, error) == (0, "")
    sha256 = GOOD.certificate.fingerprint(SHA256()).hex(":").upper()
    for line in (
        f"localhost:{there.port}",
        "  route:          this host",
        "  demanded:       verify, by <tls> in line 4",
        "  names:          localhost (at verify)",
        f"localhost[127.0.0.1]:{there.port}",
        "  greeting:       220 mx.example ESMTP",
        "  offers:         PIPELINING, SIZE 5000, STARTTLS",
        "  STARTTLS:       220 2.0.0 go on",
        "  certificate 1:  CN=localhost",
        "    issuer:       CN=authority.example",
        f"    SHA-256:      {sha256}",
        "  certificate 2:  CN=authority.example",
        "  under TLS:      PIPELINING, SIZE 5000, AUTH PLAIN SCRAM-SHA-256",
        "  AUTH:           PLAIN SCRAM-SHA-256",
        "  level:          verify: TLS with a certificate that was verified",
        "  mail:           goes here (verify)",
        "1 address; mail would go to it",
    ):
        assert line in out.splitlines()


def test_a_relay_with_tls_from_the_start_is_shown_by_its_own_rules(tmp_path: Path) -> None:
    with host(Play(GOOD, is_immediate=True)) as there:
        tls = f'<tls level="verify" latent="N" cafile="{tmp_path}/ca.pem"/>'
        relays = f'<relay address="localhost:{there.port}" destdomains="a.example">{tls}</relay>'
        options = configure(tmp_path, "opportunistic", relays=relays)
        for words in ("a.example", "localhost", f"localhost:{there.port}"):
            status, out, _ = run([*options, "tls", words, "--json"], tmp_path)
            found = json.loads(out)
            assert (status, found["level"], found["route"]) == (0, "verify", "<relay> in line 2")
            assert (found["offers"], found["starttls"]) == ([], "")
            assert found["offers_under_tls"] == ["PIPELINING", "SIZE 5000", "AUTH PLAIN SCRAM-SHA-256"]


def test_a_certificate_that_nobody_can_read_is_no_other_level(tmp_path: Path) -> None:
    made = Unreadable(GOOD.certificate, GOOD.key)
    status, found, _ = probe(tmp_path, Play(made), OPPORTUNISTIC)
    assert (status, found["level"], found["trouble"]) == (0, "encrypt", "")
    (shown,) = found["chain"]
    assert (shown["subject"], shown["not_after"]) == ("can't be read", None)
    assert shown["sha256"] == hashlib.sha256(made.der).digest().hex(":").upper()


@pytest.mark.parametrize(
    ("types", "status", "said"),
    [
        ("PLAIN", 0, "not tried (it would show the password)"),
        ("SCRAM-SHA-256 | PLAIN", 0, "not tried (it would use the password)"),
        ("SCRAM-SHA-256-PLUS | LOGIN", 75, "none of SCRAM-SHA-256-PLUS LOGIN is offered"),
    ],
)
def test_of_credentials_it_is_told_whether_they_could_be_shown(tmp_path: Path, types: str, status: int, said: str) -> None:
    secret = tmp_path / "relay.secret"
    secret.write_text("s3cret\n")
    secret.chmod(0o600)
    with host(Play(GOOD)) as there:
        auth = f'<auth types="{types}"><username>joe</username><passwordfile>{secret}</passwordfile></auth>'
        relay = f'<relay address="localhost:{there.port}"><tls cafile="{tmp_path}/ca.pem"/>{auth}</relay>'
        options = configure(tmp_path, "opportunistic", relays=relay)
        found_status, out, _ = run([*options, "tls", "c.example"], tmp_path)
    assert found_status == status
    assert f"  authentication: {said}" in out.splitlines()
    why = f"localhost[127.0.0.1]:{there.port} offers no authentication that is configured (offers PLAIN SCRAM-SHA-256)"
    mail = "goes here (verify)" if status == 0 else f"does not go here: 451 4.7.4 host {why}"
    assert f"  mail:           {mail}" in out.splitlines()
    assert not [line for commands in there.connections for line in commands if line.startswith(b"AUTH")]


HOSTILE = {
    "a megabyte": b"x" * 10**6,
    "lines without end": b"220-\x1b[2J\x9b\xe2\x80\xae\r\n" * 10**5,
    "control characters": b"220 \x1b]0;owned\x07 \xc2\x9b2J \xe2\x80\xae\r\n",
    "no reply": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_host_neither_fills_memory_nor_reaches_the_terminal(tmp_path: Path, name: str) -> None:
    nasty = b"250-\x1b[31mX" + b"y" * 1500 + b"\r\n"
    play = Play(GOOD, greeting=HOSTILE[name], offers=b"250-mx\r\n" + nasty * 20)
    with host(play) as there:
        options = configure(tmp_path, "opportunistic", timeout="1s")
        status, out, error = run([*options, "tls", f"localhost:{there.port}"], tmp_path)
    assert status == {"control characters": 0, "nothing": 69}.get(name, 75)
    assert all(line.isprintable() for line in (out + error).splitlines())
    assert len(out) < 30_000


def test_a_host_that_speaks_a_byte_at_a_time_has_its_time(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            connected, _ = listening.accept()
            with connected:
                try:
                    while not over.wait(0.05):
                        connected.sendall(b"2")
                except OSError:
                    pass

        over = threading.Event()
        threading.Thread(target=drip, daemon=True).start()
        options = configure(tmp_path, "opportunistic", timeout="500ms")
        port = listening.getsockname()[1]
        status, out, _ = run([*options, "tls", f"127.0.0.1:{port}", "--json"], tmp_path)
        over.set()
    assert status == 75
    assert "timed out" in json.loads(out)["trouble"]


def test_a_host_that_takes_no_mail_now_is_not_good(tmp_path: Path) -> None:
    status, found, there = probe(tmp_path, Play(GOOD, greeting=b"421 4.3.2 too many connections\r\n"), "opportunistic")
    assert (status, found["level"], len(there.connections)) == (75, None, 1)
    assert found["trouble"] == "451 4.3.2 host refused the session: 421 4.3.2 too many connections"


def test_words_that_mean_no_host_and_hosts_that_are_not_there(tmp_path: Path) -> None:
    options = configure(tmp_path, "opportunistic")
    assert run([*options, "tls", "a b"], tmp_path)[0] == 64
    assert run([*options, "tls"], tmp_path)[0] == 64
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    status, out, _ = run([*options, "tls", f"127.0.0.1:{port}"], tmp_path)
    assert status == 69
    assert "failed: Connection refused" in out


# Hosts by MX


@contextmanager
def name_server(directory: Path, zone: str) -> Iterator[int]:
    """A name server that plays a zone; its port."""
    (directory / "zone").write_text(zone)
    words = [sys.executable, "-m", "tests.fakes.dnsserver", str(directory / "zone"), "--port", "0"]
    with subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert " at 127.0.0.1:" in said, said + process.stderr.read()
            yield int(said.rpartition(":")[2])
        finally:
            process.kill()


ZONE = """
c.example      MX  10 mx1.c.example
c.example      MX  20 mx2.c.example
mx1.c.example  A   127.0.0.2
mx2.c.example  A   127.0.0.3
secure.example MX  10 mx.elsewhere.example
secure.example MX  !ad
plain.example  MX  10 mx.elsewhere.example
mx.elsewhere.example A 127.0.0.4
null.example   MX  0 .
broken.example *   !servfail
"""


def of_host(name: str) -> Made:
    return make_certificate(name, by=AUTHORITY)


def test_the_hosts_of_a_domain_are_shown_in_their_order(tmp_path: Path) -> None:
    with (
        host(Play(of_host("mx1.c.example")), "127.0.0.2") as first,
        host(Play(of_host("mx2.elsewhere.example")), "127.0.0.3", first.port),
        host(Play(of_host("mx.elsewhere.example")), "127.0.0.4", first.port),
        name_server(tmp_path, ZONE) as dns,
    ):
        options = configure(tmp_path, "verify", mxport=first.port, dns=dns)
        status, out, _ = run([*options, "tls", "c.example", "--json"], tmp_path)
        one, other = map(json.loads, out.splitlines())
        assert status == 75
        assert [(found["host"], found["address"], found["preference"]) for found in (one, other)] == [
            ("mx1.c.example", "127.0.0.2", 10),
            ("mx2.c.example", "127.0.0.3", 20),
        ]
        assert (one["level"], one["names"], one["mx_is_authenticated"]) == ("verify", "c.example and all below it", False)
        assert other["trouble"].startswith(
            "451 4.7.5 Server certificate not verified: is for mx2.elsewhere.example, not c.e"
        )
        for domain, reached in (("plain.example", "encrypt"), ("secure.example", "verify")):
            status, out, _ = run([*options, "tls", domain, "--json"], tmp_path)
            found = json.loads(out)
            assert (status, found["level"]) == (0 if reached == "verify" else 75, reached)
            assert found["mx_is_authenticated"] is (reached == "verify")
        for domain, code, words in (
            ("null.example", 68, "null.example: 556 5.1.10 null.example takes no mail: null MX (RFC 7505)"),
            ("nowhere.example", 68, "nowhere.example: 550 5.1.2 no MX or address for nowhere.example"),
            ("broken.example", 75, "broken.example: 451 4.4.3 no MX record for broken.example now"),
        ):
            status, out, error = run([*options, "tls", domain], tmp_path)
            assert (status, out) == (code, "")
            assert error.startswith(words)


def test_one_silent_host_among_others_counts_for_nothing(tmp_path: Path) -> None:
    with host(Play(of_host("mx1.c.example")), "127.0.0.2") as first, name_server(tmp_path, ZONE) as dns:
        options = configure(tmp_path, "verify", mxport=first.port, dns=dns)
        status, out, error = run([*options, "tls", "c.example"], tmp_path)
    assert status == 0, out + error
    assert out.endswith("\n2 addresses; mail would go to 1\n")


def test_without_a_configuration_the_defaults_count(tmp_path: Path) -> None:
    with host(Play(GOOD)) as there:
        status, out, _ = run(["tls", f"127.0.0.1:{there.port}"], tmp_path)
    assert status == 0
    assert "  demanded:       opportunistic, by the default of <tls>" in out
    assert "  level:          encrypt: TLS, and the certificate was not verified" in out


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_sees_the_same_certificates(tmp_path: Path) -> None:
    with host(attrs.evolve(Play(GOOD), issuers=(AUTHORITY,))) as there:
        options = configure(tmp_path, "verify")
        found = json.loads(run([*options, "tls", f"localhost:{there.port}", "--json"], tmp_path)[1])
        words = ["openssl", "s_client", "-connect", f"127.0.0.1:{there.port}", "-starttls", "smtp", "-showcerts"]
        words += ["-servername", "localhost", "-CAfile", str(tmp_path / "ca.pem")]
        said = subprocess.run(words, input="QUIT\r\n", capture_output=True, text=True, timeout=60).stdout
    assert f"Cipher is {found['cipher'].split()[0]}" in said
    assert f"New, {found['protocol']}, " in said
    assert "Verify return code: 0 (ok)" in said
    pems = [block + "-----END CERTIFICATE-----\n" for block in said.split("-----END CERTIFICATE-----\n")[:-1]]
    prints = [
        subprocess.run(
            ["openssl", "x509", "-noout", "-fingerprint", "-sha256"], input=pem, capture_output=True, text=True
        ).stdout
        for pem in pems
    ]
    assert [line.strip().partition("=")[2] for line in prints] == [one["sha256"] for one in found["chain"]]
