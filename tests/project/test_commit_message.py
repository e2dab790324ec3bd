"""The form of a commit message, as the commit-msg hook checks it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.project.runners import ROOT


def check(directory: Path, message: str) -> str:
    """What the hook complains about; empty: nothing."""
    path = directory / "message"
    path.write_text(message)
    done = subprocess.run([str(ROOT / ".ci" / "commit-message"), str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (done.stderr == "")
    return done.stderr


@pytest.mark.parametrize(
    "message",
    [
        "x" * 72,
        "é" * 72 + "\n",
        "A subject\n\nA body of any length" + "." * 200,
        "\n# a comment\nA subject\n# a comment\n\nA body",
        "A subject\n# ------------------------ >8 ------------------------\ndiff --git a b\n",
    ],
)
def test_a_message_with_a_short_subject_passes(tmp_path: Path, message: str) -> None:
    assert check(tmp_path, message) == ""


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("x" * 73, "73 characters, 72 are allowed"),
        ("", "has no subject"),
        ("# a comment\n\n", "has no subject"),
        ("A subject\nA body", "second line"),
    ],
)
def test_any_other_message_is_refused_with_the_reason(tmp_path: Path, message: str, words: str) -> None:
    assert words in check(tmp_path, message)
