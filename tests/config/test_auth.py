"""`<auth>` of relays: mechanisms, secrets, the level of TLS that they demand, and what is refused with which words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mailismus.config.read.files import Files
from mailismus.config.read.load import Loader
from mailismus.config.values.auth import TYPES, AuthSettings
from mailismus.config.values.settings import RelaySettings, Settings
from mailismus.config.values.tls import TlsLevel
from mailismus.errors import ConfigError
from mailismus.smtp.auth.selection import MECHANISMS
from tests.project.runners import ROOT, environment

PASSWORD = "s3cret-pass-phrase"
TOKEN = "ya29.s3cret-t0ken"
FILE = """<mailserver><application><dirpaths><root>.</root></dirpaths></application><mta><deliver>
{client}
<relays>
<relay address="relay.example:587">
{tls}
{auth}
</relay>
</relays>
</deliver></mta></mailserver>
"""
TLS_LINE, AUTH_LINE = 5, 6


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name, text in (("relay.secret", PASSWORD), ("relay.token", TOKEN)):
        (tmp_path / name).write_text(text + "\n")
        (tmp_path / name).chmod(0o600)
    return tmp_path


def load(directory: Path, auth: str, tls: str = "", client: str = "") -> Settings:
    path = directory / "mailismus.xml"
    path.write_text(FILE.format(auth=auth, tls=tls, client=client))
    return Loader().load(str(path)).settings


def relay(directory: Path, auth: str, tls: str = "", client: str = "") -> RelaySettings:
    (found,) = load(directory, auth, tls, client).deliver.relays
    return found


def credentials(directory: Path, auth: str) -> AuthSettings:
    found = relay(directory, auth).auth
    assert found is not None
    return found


def auth_of(files: str = "<passwordfile>relay.secret</passwordfile>", types: str = "", user: str = "joe") -> str:
    attribute = f' types="{types}"' if types else ""
    return f"<auth{attribute}><username>{user}</username>{files}</auth>"


BOTH = "<passwordfile>relay.secret</passwordfile><tokenfile>relay.token</tokenfile>"
TOKEN_FILE = "<tokenfile>relay.token</tokenfile>"


def test_the_configuration_knows_the_mechanisms_that_there_are() -> None:
    assert set(TYPES) == set(MECHANISMS)


@pytest.mark.parametrize(
    ("auth", "types"),
    [
        (auth_of(), ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "PLAIN", "LOGIN")),
        (auth_of(TOKEN_FILE), ("XOAUTH2",)),
        (auth_of(BOTH), ("XOAUTH2", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "PLAIN", "LOGIN")),
        (auth_of(types="SCRAM-SHA-256 | PLAIN"), ("SCRAM-SHA-256", "PLAIN")),
        (auth_of(types="plain|cram-md5"), ("PLAIN", "CRAM-MD5")),
        (auth_of(BOTH, "PLAIN | XOAUTH2"), ("PLAIN", "XOAUTH2")),
    ],
)
def test_the_mechanisms_stand_in_the_written_order(directory: Path, auth: str, types: tuple[str, ...]) -> None:
    found = credentials(directory, auth)
    assert found.types == types
    for name in types:
        assert found.source_of(name).path.endswith("relay.token" if name == "XOAUTH2" else "relay.secret")


def test_auth_demands_verified_tls(directory: Path) -> None:
    found = relay(directory, auth_of(), client='<client><tls level="none"/></client>')
    assert found.tls is not None
    assert (found.tls.level, found.tls.demanded_by) == (TlsLevel.VERIFY, f"<auth> in line {AUTH_LINE}")
    found = relay(directory, auth_of(), '<tls name="mx.example"/>')
    assert found.tls is not None
    assert (found.tls.level, found.tls.names) == (TlsLevel.VERIFY, ("mx.example",))
    found = relay(directory, auth_of(), '<tls latent="N"/>')
    assert found.tls is not None
    assert (found.tls.level, found.tls.is_immediate) == (TlsLevel.VERIFY, True)


def test_encrypt_is_enough_where_it_is_written(directory: Path) -> None:
    found = relay(directory, auth_of(), '<tls level="encrypt"/>')
    assert found.tls is not None
    assert (found.tls.level, found.tls.demanded_by) == (TlsLevel.ENCRYPT, f"<tls> in line {TLS_LINE}")


@pytest.mark.parametrize("level", ["none", "opportunistic"])
def test_a_lower_level_is_refused(directory: Path, level: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(directory, auth_of(), f'<tls level="{level}"/>')
    assert str(refused.value) == (
        f'{directory}/mailismus.xml:{TLS_LINE}: <tls>: level is "{level}", and <auth> in line {AUTH_LINE} would send a '
        "secret without TLS: remove the level, which is verify then, or write encrypt"
    )


@pytest.mark.parametrize(
    ("auth", "words"),
    [
        ("<auth/>", "<auth> has no <username>"),
        (auth_of(""), "<auth> has no secret: write <passwordfile>, or <tokenfile> for XOAUTH2"),
        (auth_of(types="XOAUTH2"), "XOAUTH2 needs <tokenfile>"),
        (auth_of(types="PLAIN | XOAUTH2"), "XOAUTH2 needs <tokenfile>"),
        (auth_of(TOKEN_FILE, "PLAIN"), "PLAIN needs <passwordfile>"),
        (auth_of(BOTH, "PLAIN"), "<tokenfile>: no mechanism in types uses it: remove it, or add XOAUTH2"),
        (auth_of(BOTH, "XOAUTH2"), "<passwordfile>: no mechanism in types uses it"),
        (auth_of(types="PLAIN | plain"), "PLAIN stands there twice"),
        (auth_of(types="DIGEST-MD5"), '"DIGEST-MD5" is not known: write some of SCRAM-SHA-256-PLUS'),
        (auth_of(types="PLAIN LOGIN"), '"PLAIN LOGIN" is not known'),
        (auth_of(user=" "), "<username>"),
        (auth_of(user="joe\u0221"), "<username> can't be used for SCRAM"),
        (auth_of("<passwordfile>none</passwordfile>"), "<passwordfile>: there is no such file: write it, mode 600"),
        (auth_of("<password>x</password>"), "<password> is not known in <auth>"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(directory: Path, auth: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(directory, auth)
    assert words in refused.value.text
    assert refused.value.line == AUTH_LINE


def test_a_secret_in_place_of_its_file_is_not_repeated(directory: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load(directory, auth_of("<passwordfile>s3cret pass</passwordfile>"))
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o604])
def test_a_secret_that_others_may_read_is_refused_with_the_command_to_run(directory: Path, mode: int) -> None:
    (directory / "relay.secret").chmod(mode)
    path = f"{directory}/relay.secret"
    with pytest.raises(ConfigError) as refused:
        load(directory, auth_of())
    assert refused.value.text == (
        f"<passwordfile>: {path} can't be used: others than its owner may use it (mode {mode:04o}); chmod 600 {path}"
    )


@pytest.mark.parametrize("data", [b"", b"one\ntwo\n", b"a\0b", b"\xff", b"x" * 10_000, "\u0221".encode()])
def test_a_file_that_is_no_secret_is_refused_and_not_quoted(directory: Path, data: bytes) -> None:
    (directory / "relay.secret").write_bytes(data)
    with pytest.raises(ConfigError) as refused:
        load(directory, auth_of())
    assert "relay.secret can't be used" in refused.value.text
    assert "two" not in refused.value.text


def test_a_file_that_was_written_again_makes_other_credentials(directory: Path) -> None:
    first, again = credentials(directory, auth_of()), credentials(directory, auth_of())
    assert first == again
    assert hash(first) == hash(again)
    (directory / "relay.secret").write_text("another\n")
    assert credentials(directory, auth_of()) != first


def test_a_change_of_the_file_is_a_change_of_the_setting(directory: Path) -> None:
    loader = Loader()
    path = directory / "mailismus.xml"
    path.write_text(FILE.format(auth=auth_of(), tls="", client=""))
    before = loader.load(str(path)).settings.effective
    (directory / "relay.secret").write_text("another\n")
    after = loader.load(str(path)).settings.effective
    changed = [new.path for old, new in zip(before, after, strict=True) if old.content != new.content]
    assert changed == ["mta/deliver/relays/relay/auth/passwordfile"]


def test_settings_and_what_is_shown_of_them_hold_no_secret(directory: Path) -> None:
    settings = load(directory, auth_of(BOTH))
    text = repr(settings) + repr(settings.effective)
    ran = subprocess.run(
        [sys.executable, "-m", "mailismus", "--config", str(directory / "mailismus.xml"), "config", "show"],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=60,
        text=True,
    )
    assert "relay.secret" in ran.stdout
    for secret in (PASSWORD, TOKEN):
        assert secret not in text + ran.stdout + ran.stderr


@pytest.mark.parametrize("mode", [0o644, None])
def test_who_looks_at_the_queue_needs_no_secret(directory: Path, mode: int | None) -> None:
    path, secret = directory / "mailismus.xml", directory / "relay.secret"
    path.write_text(FILE.format(auth=auth_of(), tls="", client=""))
    if mode is None:
        secret.unlink()
    else:
        secret.chmod(mode)
    files = Files(needs_secrets=False)
    Loader(files).load(str(path))
    ((line, text),) = files.complaints
    assert line > 1
    assert "<passwordfile>" in text
    assert ("there is no such file" if mode is None else "relay.secret can't be used") in text
    for command, status in ((["queue", "count"], 78), (["config", "check"], 78)):
        ran = subprocess.run(
            [sys.executable, "-m", "mailismus", "--config", str(path), *command],
            env=environment(),
            cwd=ROOT,
            capture_output=True,
            timeout=60,
            text=True,
        )
        assert ran.returncode == status
        assert ("warning: <passwordfile>" in ran.stderr) is (command[0] == "queue")
        assert ("there is no queue" in ran.stderr) is (command[0] == "queue")
