"""Files with a secret: who may own and read them, what they hold, and what a secret shows of itself."""

from __future__ import annotations

import copy
import logging
import os
import pickle
from pathlib import Path

import attrs
import pytest
from twisted.python.failure import Failure

from mailismus.errors import SecretError
from mailismus.secret_file import MAX_BYTES, Secret, read_secret, version_of

OTHER_UID = 12345
"""A user that does not exist."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "relay.secret"
    found.write_bytes(b"hunter2\n")
    found.chmod(0o600)
    return found


def read(path: Path, *, is_token: bool = False) -> bytes:
    return bytes(read_secret(str(path), is_token=is_token).secret)


def refusal(path: Path, *, is_token: bool = False) -> str:
    with pytest.raises(SecretError) as refused:
        read_secret(str(path), is_token=is_token)
    return str(refused.value)


@pytest.mark.parametrize(
    ("data", "secret"),
    [
        (b"hunter2", b"hunter2"),
        (b"hunter2\n", b"hunter2"),
        (b"hunter2\r\n", b"hunter2"),
        (b" with blanks \n", b" with blanks "),
        ("pässwörd\n".encode(), "pässwörd".encode()),
        (b"x" * MAX_BYTES, b"x" * MAX_BYTES),
    ],
)
def test_a_file_holds_one_line(path: Path, data: bytes, secret: bytes) -> None:
    path.write_bytes(data)
    assert read(path) == secret


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is empty"),
        (b"\n", "it is empty"),
        (b"one\ntwo\n", "more than one line"),
        (b"one\n\n", "more than one line"),
        (b"one\rtwo", "more than one line"),
        (b"one\0two", "a NUL"),
        (b"\xff\xfe", "not UTF-8"),
        (b"x" * (MAX_BYTES + 1), "larger than 8192 bytes"),
        (b"x" * 100_000, "larger than 8192 bytes"),
    ],
)
def test_another_content_is_refused_and_not_quoted(path: Path, data: bytes, words: str) -> None:
    path.write_bytes(data)
    text = refusal(path)
    assert words in text
    assert str(path) in text
    assert "one" not in text.replace("alone", "").replace("one line", "")


def test_a_token_has_no_blanks_and_no_other_letters(path: Path) -> None:
    path.write_bytes(b"ya29.a-b_c~+/==\n")
    assert read(path, is_token=True) == b"ya29.a-b_c~+/=="
    for data in (b"ya29 abc", b"ya29\1abc", "ya29ä".encode()):
        path.write_bytes(data)
        assert "other characters" in refusal(path, is_token=True)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601, 0o660])
def test_a_file_that_others_may_use_is_refused_with_the_command_to_run(path: Path, mode: int) -> None:
    path.chmod(mode)
    assert refusal(path) == f"others than its owner may use it (mode {mode:04o}); chmod 600 {path}"


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_file_of_the_owner_alone_is_read(path: Path, mode: int) -> None:
    path.chmod(mode)
    assert read(path) == b"hunter2"


def test_a_file_of_another_user_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: OTHER_UID)
    if os.stat(path).st_uid == 0:
        assert read(path) == b"hunter2"  # root's is good
        os.chown(path, OTHER_UID + 1, -1)
    assert refusal(path).endswith(f"and not to {OTHER_UID} or root; chown {OTHER_UID} {path}")


def test_the_file_behind_a_link_is_judged(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(path)
    assert read(link) == b"hunter2"
    path.chmod(0o644)
    assert "mode 0644" in refusal(link)


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    assert "regular file" in refusal(fifo)
    assert "Is a directory" in refusal(tmp_path)
    assert "No such file" in refusal(tmp_path / "none")
    assert "regular file" in refusal(Path("/dev/zero"))


def test_a_file_that_was_written_again_has_another_version(path: Path, tmp_path: Path) -> None:
    first = read_secret(str(path)).version
    assert version_of(str(path)) == first == read_secret(str(path)).version
    new = tmp_path / "new"
    new.write_bytes(b"hunter3\n")
    new.chmod(0o600)
    new.rename(path)
    assert version_of(str(path)) != first
    assert bytes(first) != bytes(read_secret(str(path)).version)
    assert version_of(str(tmp_path / "none")) is None


# ---------------------------------------------------------------------- what a secret shows


@attrs.frozen
class Holder:
    """A value with a secret in it."""

    secret: Secret


def test_a_secret_shows_itself_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret(b"hunter2")
    logging.getLogger("mailismus").warning("%s %r", secret, Holder(secret))
    try:
        raise ValueError(secret)
    except ValueError as error:
        texts = [str(error), repr(error), Failure(captureVars=True).getTraceback(detail="verbose")]  # type: ignore[no-untyped-call]
    texts += [str(secret), repr(secret), f"{secret}", f"{secret!r:>9}", f"{secret:>9}", str([secret]), caplog.text]
    texts.append("%s" % secret)  # noqa: UP031  # one of the ways in which text is made
    for text in texts:
        assert "hunter2" not in text
        assert "<secret>" in text


@pytest.mark.parametrize("use", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_secret_can_not_be_pickled_or_copied(use: object) -> None:
    assert callable(use)
    with pytest.raises(TypeError, match="can't be pickled"):
        use(Secret(b"hunter2"))


def test_a_wiped_secret_is_empty() -> None:
    secret = Secret(b"hunter2")
    secret.wipe()
    assert not secret
