"""`<tls>` towards other servers: what is inherited, and the files that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailismus.config.read.changes import what_changed
from mailismus.config.read.load import LoadedConfig, Loader
from mailismus.config.values.settings import DeliverSettings
from mailismus.config.values.tls import TlsLevel, TlsSettings, TlsVersion
from mailismus.errors import ConfigError
from tests.fakes.certificates import make_certificate

WHOLE = """<mailserver><mta><deliver>
<relays>
{relays}
</relays>
<destinations>
{destinations}
</destinations>
<client>
{client}
</client></deliver></mta></mailserver>"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a certificate for us and its key, and one of an issuer."""
    made, other = make_certificate(), make_certificate("issuer.example", days=42)
    (tmp_path / "cert.pem").write_bytes(made.pem)
    (tmp_path / "key.pem").write_bytes(made.key_pem)
    (tmp_path / "both.pem").write_bytes(made.key_pem + made.pem)
    (tmp_path / "issuer.pem").write_bytes(other.pem)
    (tmp_path / "other-key.pem").write_bytes(other.key_pem)
    for path in tmp_path.iterdir():
        path.chmod(0o600)
    return tmp_path


def load(place: Path, relays: str = "", destinations: str = "", client: str = "") -> LoadedConfig:
    text = WHOLE.format(relays=relays, destinations=destinations, client=client).replace("PLACE", str(place))
    file = place / "mailismus.xml"
    file.write_text(text)
    return Loader().load(str(file))


def deliver(place: Path, **parts: str) -> DeliverSettings:
    return load(place, **parts).settings.deliver


def relay_of(place: Path, relay: str, client: str = "") -> TlsSettings | None:
    return deliver(place, relays=relay, client=client).relays[0].tls


def test_without_any_it_is_opportunistic(place: Path) -> None:
    found = deliver(place, relays='<relay address="a"/>', destinations='<destination domains="b"/>')
    assert found.client.tls == TlsSettings(TlsLevel.OPPORTUNISTIC)
    assert (found.relays[0].tls, found.destinations[0].tls) == (None, None)


def test_each_says_its_own_and_takes_the_rest_from_the_client(place: Path) -> None:
    found = deliver(
        place,
        relays='<relay address="a"><tls level="verify" name="a.example,b.example"/></relay>',
        destinations='<destination domains="b"><tls minversion="1.2"/></destination>',
        client='<tls level="encrypt" minversion="1.3" cafile="PLACE/issuer.pem" certificate="PLACE/cert.pem" '
        'privatekey="PLACE/key.pem" name="c.example"/>',
    )
    client, relay, destination = found.client.tls, found.relays[0].tls, found.destinations[0].tls
    assert relay is not None
    assert destination is not None
    assert (client.level, client.demanded_by, client.names) == (TlsLevel.ENCRYPT, "<tls> in line 9", ("c.example",))
    assert client.trust is not None
    assert client.certificate is not None
    assert client.trust.path == str(place / "issuer.pem")
    assert (relay.level, relay.demanded_by, relay.names) == (TlsLevel.VERIFY, "<tls> in line 3", ("a.example", "b.example"))
    assert (relay.minversion, relay.trust, relay.certificate) == (TlsVersion.TLS_1_3, client.trust, client.certificate)
    assert (destination.level, destination.demanded_by, destination.names) == (TlsLevel.ENCRYPT, "<tls> in line 9", ())
    assert destination.minversion is TlsVersion.TLS_1_2


def test_a_key_may_stand_in_the_file_of_its_certificate(place: Path) -> None:
    found = deliver(place, client='<tls certificate="PLACE/both.pem"/>').client.tls.certificate
    assert found is not None
    assert found.privatekey_path == found.certificate_path == str(place / "both.pem")
    assert b"PRIVATE KEY" in found.key_pem
    assert "PRIVATE" not in repr(found)


@pytest.mark.parametrize(
    ("relay", "level", "port", "demanded_by"),
    [
        ('<relay address="a"><tls latent="N"/></relay>', TlsLevel.ENCRYPT, 465, "<tls> in line 3"),
        ('<relay address="a:26"><tls latent="N" level="verify"/></relay>', TlsLevel.VERIFY, 26, "<tls> in line 3"),
        ('<relay address="a"><tls latent="Y"/></relay>', TlsLevel.OPPORTUNISTIC, 25, "the default of <tls>"),
        ('<relay address="[2001:db8::1]"><tls latent="N"/></relay>', TlsLevel.ENCRYPT, 465, "<tls> in line 3"),
    ],
)
def test_tls_from_the_start_is_tls_and_has_a_port_of_its_own(
    place: Path, relay: str, level: TlsLevel, port: int, demanded_by: str
) -> None:
    loaded = load(place, relays=relay)
    (found,) = loaded.settings.deliver.relays
    assert found.tls is not None
    assert (found.tls.level, found.tls.is_immediate, found.tls.demanded_by) == (level, 'latent="N"' in relay, demanded_by)
    assert found.port == port
    (shown,) = [one.text for one in loaded.effective if one.path.endswith("relay/@address")]
    assert shown.endswith(f":{port}")


BAD = {
    "no certificate in cafile": (
        '<tls level="verify" cafile="PLACE/key.pem"/>',
        "cafile: PLACE/key.pem holds no certificate in PEM",
    ),
    "another's key": (
        '<tls certificate="PLACE/cert.pem" privatekey="PLACE/other-key.pem"/>',
        "privatekey: it is not the key of the first certificate",
    ),
    "no key": ('<tls certificate="PLACE/cert.pem"/>', "privatekey: PLACE/cert.pem holds no private key in PEM"),
    "a directory": ('<tls certificate="PLACE"/>', "certificate: PLACE can't be read"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("where", ["relay", "destination", "client"])
def test_a_bad_file_is_named_with_its_line(place: Path, name: str, where: str) -> None:
    tls, words = BAD[name]
    parts = {
        "relay": {"relays": f'<relay address="a">\n{tls}</relay>'},
        "destination": {"destinations": f'<destination domains="a">\n{tls}</destination>'},
        "client": {"client": tls},
    }[where]
    with pytest.raises(ConfigError) as caught:
        load(place, **parts)
    assert caught.value.line == {"relay": 4, "destination": 7, "client": 9}[where]
    assert caught.value.text.startswith(f"<tls>: {words}".replace("PLACE", str(place)))


def test_a_key_that_all_can_read_is_noted(place: Path) -> None:
    (place / "key.pem").chmod(0o644)
    notes = load(place, client='<tls certificate="PLACE/cert.pem" privatekey="PLACE/key.pem"/>').notes
    assert f"the private key {place}/key.pem can be read by everybody: chmod o= it" in notes


@pytest.mark.parametrize("name", ["cert.pem", "issuer.pem"])
def test_another_content_of_a_file_is_a_change(place: Path, name: str) -> None:
    client = '<tls level="verify" certificate="PLACE/both.pem" cafile="PLACE/issuer.pem"/>'
    before = load(place, client=client)
    assert not what_changed(before.effective, load(place, client=client).effective)
    other = make_certificate("new.example")
    (place / "both.pem").write_bytes(other.pem + other.key_pem)
    (place / "issuer.pem").write_bytes(other.pem)
    after = load(place, client=client)
    assert what_changed(before.effective, after.effective)
    assert before.settings.deliver.client.tls != after.settings.deliver.client.tls
