"""Crash points catch a provider that forgets what a beginner forgets; where no crash can hurt it they find nothing."""

from __future__ import annotations

import pytest

from mailismus.disk.interface import IDisk
from tests.durability.crash.__main__ import main
from tests.durability.crash.explorer import Explorer
from tests.durability.crash.knowledge import Broken
from tests.durability.crash.workloads import QUICK, SHALLOW
from tests.durability.subjects.naive import NAIVE
from tests.naive.files import StoredMail, write_mail


@pytest.mark.parametrize("name", ["store", "store a large one", "report", "store many", "kill the first start"])
def test_a_name_that_is_not_synced_is_found(name: str) -> None:
    with pytest.raises(Broken, match=r"I1: .* is lost"):
        Explorer(NAIVE).explore((name,), QUICK)


@pytest.mark.parametrize("name", ["retry", "bounce", "deliver"])
def test_an_outcome_in_memory_alone_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also once the names are synced."""

    def write_durably(disk: IDisk, root: str, mail: StoredMail) -> None:
        write_mail(disk, root, mail)
        disk.sync_directory(root)
        disk.sync_directory("/")

    monkeypatch.setattr("tests.naive.provider.write_mail", write_durably)
    assert Explorer(NAIVE).explore(("store three",), QUICK).crashes > 5
    with pytest.raises(Broken, match=r"I3: .*(is undone|was settled and is live)"):
        Explorer(NAIVE).explore(("store three", name), QUICK)


def test_where_nothing_was_answered_nothing_is_found() -> None:
    tally = Explorer(NAIVE).explore(("fail a barrier",), SHALLOW)
    assert tally.crashes > 100


def test_the_command_tells_what_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--provider", "naive"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("store: BROKEN\nI1: ")
    assert "1 workloads break an invariant" in out
