"""What the command reads of a configuration: enough for any user, who may read nothing that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailismus.config.read.load import load, load_for_program
from mailismus.errors import ConfigError

TEXT = """<mailserver><application><announcehost>mx.example.net</announcehost></application>
<directory><domains>{domains}</domains><users>joe</users><postmaster>joe</postmaster></directory>
<mta><submit><listeners><listener port="0">
<server><maxmsgsize>1K</maxmsgsize><maxrecips>7</maxrecips></server>{more}</listener>
</listeners><sendmail>{inner}</sendmail></submit></mta></mailserver>"""
TLS = "<ssl><certificate>/nowhere/cert.pem</certificate><privatekey>/nowhere/key.pem</privatekey></ssl>"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mailismus.xml"


@pytest.mark.parametrize(
    ("domains", "inner", "origin"),
    [
        ("our.example | b.example", "", b"our.example"),
        ("our.example", "<origin>o.example</origin>", b"o.example"),
        ("/nowhere/domains", "", b"mx.example.net"),
        ("/nowhere/domains", "<origin>o.example</origin>", b"o.example"),
    ],
)
def test_files_that_a_user_may_not_read_are_not_needed(file: Path, domains: str, inner: str, origin: bytes) -> None:
    file.write_text(TEXT.format(domains=domains, inner=inner, more=TLS))
    settings = load_for_program(str(file))
    assert (settings.maxmsgsize, settings.maxrecips, settings.sendmail.origin) == (1000, 7, origin)
    with pytest.raises(ConfigError, match="/nowhere"):
        load(str(file))


def test_the_server_has_the_same(file: Path) -> None:
    file.write_text(TEXT.format(domains="our.example", inner="<allow>joe|1</allow><deny>*</deny>", more=""))
    settings = load(str(file)).settings
    assert settings.sendmail == load_for_program(str(file)).sendmail
    assert settings.sendmail is not None
    assert (settings.sendmail.allow, settings.sendmail.deny) == (("joe", "1"), ("*",))


def test_a_wrong_file_is_told_with_its_line(file: Path) -> None:
    file.write_text("<mailserver>\n<nonsense/></mailserver>")
    with pytest.raises(ConfigError) as caught:
        load_for_program(str(file))
    assert caught.value.line == 2
