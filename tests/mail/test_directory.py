"""The directory that is in use, over reloads."""

from __future__ import annotations

from mailismus.mail.directory import Directory, DirectoryInUse


def test_the_directory_in_use_answers_by_the_newest_one() -> None:
    in_use = DirectoryInUse(Directory(frozenset({b"home.example"}), frozenset({b"joe"}), b"joe"))
    assert in_use.is_local(b"anybody@HOME.example")
    assert in_use.is_local(b"postmaster")
    assert not in_use.is_local(b"joe@a.example")
    in_use.reload(Directory(frozenset({b"a.example"}), frozenset({b"joe"}), b"joe"))
    assert in_use.is_local(b"joe@a.example")
    assert not in_use.is_local(b"joe@home.example")
