"""Where secrets are not: the whole server, which has used a password and a token, its files, its commands and its memory."""

from __future__ import annotations

import base64
import re
import smtplib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.auth_server import AuthServer
from tests.fakes.certificates import make_certificate
from tests.project.runners import ROOT, environment
from tests.scenarios.mailserver import MailServer, configure, serving

PASSWORD = "Zaphod-s3cret-pass-phrase-42"
TOKEN = "ya29.Trillian-s3cret-t0ken-43"
USER = "ford-prefect"
TYPES = ("SCRAM-SHA-256-PLUS", "PLAIN", "LOGIN", "XOAUTH2", "CRAM-MD5")


def forms(secret: str) -> list[bytes]:
    """What gives a secret away: itself, in UTF-16 and UCS-4, and in base64 at each of the three alignments."""
    data = secret.encode()
    coded = []
    for before in range(3):
        text = base64.b64encode(b"\0" * before + data)
        coded.append(text[(before * 8 + 5) // 6 : len(text) - 4])
    return [data, secret.encode("utf-16-le"), secret.encode("utf-32-le"), *coded]


def memory(pid: int) -> Iterator[bytes]:
    """All that a process may write to: heap, stacks, mapped arrays."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in maps.read().splitlines():
            found = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if found is None or "[vvar]" in line:
                continue
            begin, end = (int(place, 16) for place in found.groups())
            try:
                mem.seek(begin)
                yield mem.read(end - begin)
            except OSError:
                continue


def places(pid: int, words: list[bytes]) -> dict[bytes, int]:
    """How often these words are in the memory of a process."""
    found = dict.fromkeys(words, 0)
    for region in memory(pid):
        for word in words:
            found[word] += region.count(word)
    return found


def run(server: MailServer, *words: str) -> bytes:
    """What a command prints."""
    return subprocess.run(
        [sys.executable, "-m", "mailismus", "--config", str(server.directory / "mailismus.xml"), *words],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        timeout=60,
    ).stdout


@pytest.fixture
def servers() -> Iterator[dict[str, AuthServer]]:
    made = make_certificate("localhost")
    found = {
        name: AuthServer(made, user=USER.encode(), password=PASSWORD.encode(), token=TOKEN.encode(), offers=name.encode())
        for name in TYPES
    }
    yield found
    for server in found.values():
        server.close()


def test_secrets_are_in_no_file_and_no_output_and_gone_from_memory(tmp_path: Path, servers: dict[str, AuthServer]) -> None:
    (tmp_path / "issuer.pem").write_bytes(servers["PLAIN"].made.pem)
    for name, text in (("relay.secret", PASSWORD), ("relay.token", TOKEN)):
        (tmp_path / name).write_text(text + "\n")
        (tmp_path / name).chmod(0o600)
    file = "<{0}>relay.{1}</{0}>"
    relays = "".join(
        f'<relay address="localhost:{server.port}" destdomains="d{number}.example"><tls cafile="issuer.pem"/>'
        f'<auth types="{name}"><username>{USER}</username>'
        + (file.format("tokenfile", "token") if name == "XOAUTH2" else file.format("passwordfile", "secret"))
        + "</auth></relay>"
        for number, (name, server) in enumerate(servers.items())
    )
    configure(
        tmp_path,
        ssl="",
        more="",
        server="<relay_clients>127.0.0.1</relay_clients>",
        deliver=f"<relays>{relays}</relays><schedule><maxage_idle>100ms</maxage_idle></schedule>",
    )
    with serving(tmp_path) as server:
        with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=30) as submitting:
            for number in range(len(TYPES)):
                submitting.sendmail("s@far.example", [f"r@d{number}.example"], b"Subject: x\r\n\r\nx\r\n")
        deadline = time.monotonic() + 60
        while server.output.read_text().count("status=") < len(TYPES) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert server.output.read_text().count("status=sent") == len(TYPES), server.output.read_text()
        for name, one in servers.items():
            assert one.exchanges == [name]
        time.sleep(1)  # the connections end
        outputs = [run(server, *words) for words in (["config", "show"], ["config", "diff"], ["queue", "list", "--json"])]
        pid = server.process.pid
        for part in ("environ", "cmdline"):
            outputs.append(Path(f"/proc/{pid}/{part}").read_bytes())
        try:
            in_memory = places(pid, [USER.encode(), *forms(PASSWORD), *forms(TOKEN)])
        except PermissionError:
            in_memory = {}
    secrets = forms(PASSWORD) + forms(TOKEN)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix not in (".secret", ".token")]
    assert len(files) > 5
    for path in files:
        outputs.append(path.read_bytes())
        if path.suffix in (".mqj", ".mqc", ".msg") or "state" in path.parts:
            outputs.append(run(server, "dump", str(path)))
    assert [word for word in secrets for output in outputs if word in output] == []
    if in_memory:
        assert in_memory[USER.encode()] > 0  # what is kept is found
        assert {word: count for word, count in in_memory.items() if count and word != USER.encode()} == {}
