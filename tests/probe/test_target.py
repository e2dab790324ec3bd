"""What `DOMAIN`, `HOST:PORT` and an IP address mean by a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailismus.config.read.load import load
from mailismus.config.values.settings import Settings
from mailismus.config.values.tls import TlsLevel
from mailismus.deliver.routes.route import HostFinding
from mailismus.errors import StartError
from mailismus.probe.target import Target, find_target

TEXT = """<mailserver><application><announcehost>mx.our.example</announcehost></application>
<directory><domains>our.example</domains><users>joe</users><postmaster>joe</postmaster></directory>
<mta><deliver>
<relays>
<relay address="relay.example:587" destdomains="a.example"><tls level="verify" name="other.example"/></relay>
<relay address="sender.example:25" senders="b.example"/>
{default}
</relays>
<destinations><destination domains="bank.example"><tls level="encrypt"/></destination></destinations>
<client><mxport>2525</mxport></client>
</deliver></mta></mailserver>
"""
DEFAULT = '<relay address="default.example:2587"><tls level="verify"/></relay>'


def read(path: Path, default: str = "") -> Settings:
    (path / "m.xml").write_text(TEXT.format(default=default))
    return load(str(path / "m.xml")).settings


def facts(target: Target) -> tuple[str, int, HostFinding, TlsLevel, str, str]:
    hop = target.next_hop
    return hop.host, hop.port, hop.finding, hop.profile.level, hop.profile.requirement.names.describe(), target.route


MX, ADDRESS = HostFinding.MX, HostFinding.ADDRESS
OPPORTUNISTIC, ENCRYPT, VERIFY = TlsLevel.OPPORTUNISTIC, TlsLevel.ENCRYPT, TlsLevel.VERIFY
BY_MX = "the mail hosts of the domain (MX)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c.example", ("c.example", 2525, MX, OPPORTUNISTIC, "", BY_MX)),
        ("C.Example.", ("c.example", 2525, MX, OPPORTUNISTIC, "", BY_MX)),
        ("bücher.example", ("xn--bcher-kva.example", 2525, MX, OPPORTUNISTIC, "", BY_MX)),
        ("bank.example", ("bank.example", 2525, MX, ENCRYPT, "", BY_MX)),
        ("a.example", ("relay.example", 587, ADDRESS, VERIFY, "other.example", "<relay> in line 5")),
        ("relay.example", ("relay.example", 587, ADDRESS, VERIFY, "other.example", "<relay> in line 5")),
        ("relay.example:587", ("relay.example", 587, ADDRESS, VERIFY, "other.example", "<relay> in line 5")),
        ("relay.example:25", ("relay.example", 25, ADDRESS, OPPORTUNISTIC, "", "this host")),
        ("sender.example", ("sender.example", 25, ADDRESS, OPPORTUNISTIC, "", "<relay> in line 6")),
        ("b.example", ("b.example", 2525, MX, OPPORTUNISTIC, "", BY_MX)),
        ("192.0.2.1", ("192.0.2.1", 2525, ADDRESS, OPPORTUNISTIC, "", "this host")),
        ("[2001:db8::1]:25", ("2001:db8::1", 25, ADDRESS, OPPORTUNISTIC, "", "this host")),
        ("2001:db8::1", ("2001:db8::1", 2525, ADDRESS, OPPORTUNISTIC, "", "this host")),
    ],
)
def test_words_mean_a_host_or_the_way_of_a_domain(
    tmp_path: Path, text: str, expected: tuple[str, int, HostFinding, TlsLevel, str, str]
) -> None:
    assert facts(find_target(text, read(tmp_path))) == expected


def test_the_default_relay_is_the_way_of_other_domains(tmp_path: Path) -> None:
    expected = ("default.example", 2587, ADDRESS, VERIFY, "default.example", "<relay> in line 7")
    settings = read(tmp_path, DEFAULT)
    assert facts(find_target("c.example", settings)) == expected
    assert facts(find_target("mx.c.example:25", settings))[-1] == "this host"


def test_of_relays_with_one_address_the_route_names_the_one_that_mail_takes(tmp_path: Path) -> None:
    default = '<relay address="one.example:587"/><!--\n--><relay address="one.example:587" destdomains="d.example"/>'
    settings = read(tmp_path, default)
    assert find_target("c.example", settings).route == "<relay> in line 7"
    assert find_target("d.example", settings).route == "<relay> in line 8"
    assert find_target("one.example", settings).route == "<relay> in line 7, the first with this host; others: line 8"


@pytest.mark.parametrize("text", ["", ":25", "a b", "x:0", "x:y", "x:70000", "[::1", "-x.example", "\x1b[2J", "u@c.example"])
def test_what_is_no_host_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(StartError) as caught:
        find_target(text, read(tmp_path))
    assert caught.value.status == 64


def test_a_domain_whose_mail_stays_here_has_no_host(tmp_path: Path) -> None:
    with pytest.raises(StartError) as caught:
        find_target("our.example", read(tmp_path))
    assert (caught.value.status, caught.value.text) == (68, "our.example is one of <domains>: its mail stays on this server")
