"""The `<ssl>` block: files that are well, and every fault told with the line and what to write instead."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from mailismus.config.advice.certificates import advise_certificates
from mailismus.config.read.load import LoadedConfig, load
from mailismus.config.values.certificates import DAY_S, NamedCertificate, describe_end, find_trouble
from mailismus.errors import ConfigError
from tests.fakes.certificates import make_certificate

TEXT = """<mailserver><mta><submit><listeners><listener name="S" interface="127.0.0.1">
<ssl latent="Y">
<certificate>{0}/cert.pem</certificate>
<privatekey>{0}/key.pem</privatekey>
</ssl></listener></listeners></submit></mta></mailserver>
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = make_certificate()
    (tmp_path / "cert.pem").write_bytes(made.pem)
    (tmp_path / "key.pem").write_bytes(made.key_pem)
    (tmp_path / "key.pem").chmod(0o600)
    return tmp_path


def read(place: Path, old: str = "", new: str = "") -> LoadedConfig:
    (place / "m.xml").write_text(TEXT.format(place).replace(old, new) if old else TEXT.format(place))
    return load(str(place / "m.xml"))


def refuse(place: Path, old: str = "", new: str = "") -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(place, old, new)
    return caught.value


def test_a_pair_that_is_well_is_read(place: Path) -> None:
    loaded = read(place)
    ssl = loaded.settings.listeners[0].ssl
    assert ssl is not None
    assert (ssl.latent, ssl.mandatory) == (True, False)
    assert ssl.chain_pem == (place / "cert.pem").read_bytes()
    assert ssl.key_pem.strip() == (place / "key.pem").read_bytes().strip()
    (named,) = loaded.settings.certificates
    assert (named.path, named.use, named.line) == (f"{place}/cert.pem", "listener S", 3)
    assert 89 < (named.ends_at - time.time()) / DAY_S < 91
    assert loaded.settings.listeners[0].port == 25
    assert not any("certificate" in note or "key" in note for note in loaded.notes)


def test_tls_from_the_start_has_a_port_of_its_own(place: Path) -> None:
    loaded = read(place, 'latent="Y"', 'latent="N" mandatory="Y"')
    assert loaded.settings.listeners[0].port == 465
    assert {value.path.rpartition("/")[2]: value.text for value in loaded.effective}["@port"] == "465"
    assert read(place, '<ssl latent="Y"', '<server/><ssl latent="N"').settings.listeners[0].port == 465
    assert read(place, 'name="S"', 'name="S" port="25"').settings.listeners[0].port == 25


def test_two_listeners_with_tls_from_the_start_share_that_port(place: Path) -> None:
    text = (place / "m.xml").read_text() if (place / "m.xml").exists() else TEXT.format(place)
    block = text[text.index("<ssl") : text.index("</ssl>")].replace('"Y"', '"N"') + "</ssl></listener>"
    error = refuse(place, "<listeners>", f'<listeners><listener interface="127.0.0.1">{block}<listener port="465"/>')
    assert "share port 465" in error.text


def test_nothing_of_a_key_is_shown(place: Path) -> None:
    loaded = read(place)
    secret = (place / "key.pem").read_bytes().splitlines()[1].decode()
    assert secret not in repr(loaded)
    assert secret not in repr(loaded.settings)
    assert secret not in "".join(value.text for value in loaded.effective)


def test_a_chain_may_stand_behind_the_certificate_and_key_in_one_file(place: Path) -> None:
    root = make_certificate("root.example")
    made = make_certificate(by=root, days=200)
    (place / "key.pem").write_bytes(made.pem + made.key_pem + root.pem)
    settings = read(place, "cert.pem", "key.pem").settings
    ssl, (named,) = settings.listeners[0].ssl, settings.certificates
    assert ssl is not None
    assert ssl.key_pem in made.key_pem
    assert (named.ends_at - time.time()) / DAY_S < 91, "the chain ends with its first end"


def test_a_file_of_names_that_is_not_there(place: Path) -> None:
    (place / "cert.pem").unlink()
    error = refuse(place)
    assert error.line == 3
    assert error.text == f"<certificate>: {place}/cert.pem can't be read: No such file or directory"
    (place / "key.pem").unlink()
    assert refuse(place, "cert.pem", "m.xml").line == 3


def test_both_files_must_be_named(place: Path) -> None:
    error = refuse(place, f"<privatekey>{place}/key.pem</privatekey>", "")
    assert (error.line, error.text) == (2, "<ssl> has no <privatekey>: write a path; a relative one begins at the root")


def test_one_block_is_enough(place: Path) -> None:
    assert "<ssl> stands twice" in refuse(place, "</ssl>", "</ssl><ssl/>").text


def put_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


Spoil = Callable[[Path], object]
FAULTS: dict[str, tuple[Spoil, int, str]] = {
    "no key there": (lambda place: (place / "key.pem").unlink(), 4, "can't be read: No such file"),
    "a directory": (
        lambda place: put_directory(place / "key.pem"),
        4,
        "can't be read: Is a directory",
    ),
    "key and certificate exchanged": (
        lambda place: (place / "cert.pem").write_bytes((place / "key.pem").read_bytes()),
        3,
        "holds no certificate in PEM",
    ),
    "a certificate as key": (
        lambda place: (place / "key.pem").write_bytes((place / "cert.pem").read_bytes()),
        4,
        "holds no private key in PEM",
    ),
    "the key of another": (
        lambda place: (place / "key.pem").write_bytes(make_certificate().key_pem),
        4,
        "not the key of the first certificate",
    ),
    "the chain in the wrong order": (
        lambda place: (place / "cert.pem").write_bytes(make_certificate().pem + (place / "cert.pem").read_bytes()),
        4,
        "not the key of the first certificate",
    ),
    "an RSA key for another kind": (
        lambda place: (place / "key.pem").write_bytes(
            rsa.generate_private_key(65537, 2048).private_bytes(
                Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
            )
        ),
        4,
        "not the key of the first certificate",
    ),
    "a broken certificate": (
        lambda place: (place / "cert.pem").write_bytes(
            b"-----BEGIN CERTIFICATE-----\nMIIBvzCCA\n-----END CERTIFICATE-----\n"
        ),
        3,
        "a certificate that can't be read",
    ),
    "half a certificate": (
        lambda place: (place / "cert.pem").write_bytes((place / "cert.pem").read_bytes()[:200]),
        3,
        "can't be read",
    ),
    "a broken key": (
        lambda place: (place / "key.pem").write_bytes(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
        4,
        "can't be read: store it as PKCS #8",
    ),
    "an encrypted key": (
        lambda place: (place / "key.pem").write_bytes(
            make_certificate().key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
        ),
        4,
        "is encrypted: store it without a passphrase",
    ),
    "a key that signs nothing": (
        lambda place: (place / "key.pem").write_bytes(
            x25519.X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        ),
        4,
        "<privatekey>: ",
    ),
    "a key of Edwards for another kind": (
        lambda place: (place / "key.pem").write_bytes(
            ed25519.Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        ),
        4,
        "not the key of the first certificate",
    ),
    "an endless file": (lambda place: (place / "cert.pem").write_bytes(b"x" * 2_000_000), 3, "is larger than"),
}


def write_rsa(place: Path, damage: int = 0) -> None:
    """A pair of RSA whose key may have other numbers than its certificate thinks."""
    key = rsa.generate_private_key(65537, 2048)
    (place / "cert.pem").write_bytes(make_certificate(key=key).pem)
    n = key.private_numbers()
    numbers = rsa.RSAPrivateNumbers(n.p, n.q, n.d + damage, n.dmp1 + damage, n.dmq1 + damage, n.iqmp, n.public_numbers)
    damaged = numbers.private_key(unsafe_skip_rsa_key_validation=True)
    (place / "key.pem").write_bytes(damaged.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def test_an_rsa_key_is_tried_and_its_primes_are_not_proved(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rsa(place)
    proofs = []
    real = serialization.load_pem_private_key

    def load_key(data: bytes, password: None, *, unsafe_skip_rsa_key_validation: bool = False) -> object:
        proofs.append(not unsafe_skip_rsa_key_validation)
        return real(data, password, unsafe_skip_rsa_key_validation=unsafe_skip_rsa_key_validation)

    monkeypatch.setattr(serialization, "load_pem_private_key", load_key)
    assert read(place).settings.listeners[0].ssl
    assert proofs == [False, False]


def test_a_damaged_rsa_key_is_refused(place: Path) -> None:
    write_rsa(place, damage=2)
    error = refuse(place)
    assert error.line == 4
    assert error.text.startswith("<privatekey>: it is damaged: ")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_where_the_file_is_named(place: Path, name: str) -> None:
    spoil, line, words = FAULTS[name]
    spoil(place)
    error = refuse(place)
    assert (error.file, error.line) == (str(place / "m.xml"), line)
    assert words in error.text
    assert "\n" not in error.text


def test_an_end_is_advice_and_refuses_nothing(place: Path) -> None:
    made = make_certificate(days=-3.5)
    (place / "cert.pem").write_bytes(made.pem)
    (place / "key.pem").write_bytes(made.key_pem)
    (advice,) = advise_certificates(read(place).settings.certificates, time.time())
    assert (advice.severity.value, advice.line) == ("warning", 3)
    assert advice.text.startswith(f"the certificate {place}/cert.pem of listener S ended 20")
    assert advice.text.endswith(", 3 days ago: replace it and send SIGHUP")


NOW = 1_790_000_000.0  # 2026-09-21 14:13:20
CERTIFICATE = NamedCertificate("/c.pem", "listener S", 7, NOW - 90 * DAY_S, NOW)


@pytest.mark.parametrize(
    ("days_before", "words"),
    [
        (30.0, ""),
        (29.9, "ends 2026-09-21, in 29 days"),
        (1.5, "ends 2026-09-21, in 1 day"),
        (0.5, "ends 2026-09-21, in 0 days"),
        (-1.5, "ended 2026-09-21, 1 day ago"),
        (-100.0, "ended 2026-09-21, 100 days ago"),
    ],
)
def test_an_end_is_trouble_from_thirty_days_on(days_before: float, words: str) -> None:
    expected = f"the certificate /c.pem of listener S {words}: replace it and send SIGHUP" if words else ""
    assert find_trouble(CERTIFICATE, NOW - days_before * DAY_S) == expected


def test_a_certificate_of_tomorrow_is_trouble() -> None:
    certificate = NamedCertificate("/c.pem", "listener S", 7, NOW, NOW + 90 * DAY_S)
    assert find_trouble(certificate, NOW - 2 * DAY_S) == (
        "the certificate /c.pem of listener S is not valid before 2026-09-21 14:13:20 UTC: look at the clock of this host, "
        "or put one there that is valid now"
    )
    assert not find_trouble(certificate, NOW)


def test_a_key_that_everybody_can_read_is_a_note(place: Path) -> None:
    (place / "key.pem").chmod(0o604)
    assert any("can be read by everybody" in note for note in read(place).notes)
    (place / "key.pem").chmod(0o640)
    assert not any("can be read by everybody" in note for note in read(place).notes)


def test_ends_are_described_by_date_and_days() -> None:
    assert describe_end(10 * DAY_S, 0) == "ends 1970-01-11, in 10 days"
    assert describe_end(0, DAY_S) == "ended 1970-01-01, 1 day ago"


def test_certificates_and_issuers_towards_other_servers_are_named_too(tmp_path: Path) -> None:
    made, old, new = make_certificate(days=20.5), make_certificate("old.example", days=-5), make_certificate("new.example")
    (tmp_path / "cert.pem").write_bytes(made.pem + made.key_pem)
    (tmp_path / "ca.pem").write_bytes(new.pem + old.pem)
    file = tmp_path / "m.xml"
    file.write_text(f"""<mailserver><mta><deliver>
<relays><relay address="r.example:587"><tls level="verify" cafile="{tmp_path}/ca.pem"/></relay></relays>
<client><tls level="encrypt" certificate="{tmp_path}/cert.pem"/></client>
</deliver></mta></mailserver>
""")
    found = {one.path: one for one in load(str(file)).settings.certificates}
    own, issuers = found[f"{tmp_path}/cert.pem"], found[f"{tmp_path}/ca.pem"]
    assert (own.use, own.line) == ("<tls> in line 3", 3)
    assert own.ends_at == made.certificate.not_valid_after_utc.timestamp()
    assert (issuers.use, issuers.line) == ("cafile of <tls> in line 2", 2)
    assert issuers.ends_at == new.certificate.not_valid_after_utc.timestamp(), (
        "one that has ended may stand beside its successor"
    )
