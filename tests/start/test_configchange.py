"""`mailismus config set`, `unset` and `diff`: what they print, what they change, how they end."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mailismus.__main__ import main
from mailismus.config.edit.change import is_written
from mailismus.config.edit.path import parse_path
from mailismus.config.edit.replacement import Replacement
from mailismus.config.read.load import Loader, load
from mailismus.providers import PROVIDERS
from tests.admin.worlds import Running
from tests.config.corpus import in_deliver, in_queue

SAMPLE = Path(__file__).parents[2] / "config" / "mailismus.xml"
SECOND_RELAY = (
    next(
        number for number, text in enumerate(SAMPLE.read_text().splitlines(), 1) if text.strip() in ("</relays>", "</relay>")
    )
    + 1
)
"""The line of a relay that is put behind the only one of the sample."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "users").write_text("alice\n")
    return Path(shutil.copy(SAMPLE, tmp_path / "config" / "m.xml"))


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(file: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(["--config", str(file), "config", *words])
        out, err = capsys.readouterr()
        return status, out.replace(str(file), "FILE"), err.replace(str(file), "FILE")

    return run


def test_a_setting_is_set_and_its_former_text_kept(file: Path, run: Run) -> None:
    old = file.read_text()
    status, out, err = run("set", "mta/queue/retry_maxtime", "5d")
    assert (status, err) == (0, "")
    assert file.read_text() == old.replace("<retry_maxtime>72h<", "<retry_maxtime>5d<")
    assert Path(f"{file}~").read_text() == old
    assert 'FILE:51: mta/queue/retry_maxtime ("3d" before, "5d" now)\n' in out
    assert out.endswith("FILE: for a running server SIGHUP is enough\nFILE: written; the former text is in FILE~\n")
    assert load(str(file)).settings.queue.retry.maxtime_s == 5 * 86400
    assert run("set", "mta/queue/retry_maxtime", "72h")[0] == 0
    assert file.read_text() == old


def test_it_warns_of_what_the_change_brings_and_of_nothing_else(run: Run) -> None:
    words = "servers expect TLS from the start at port 465"
    assert words in run("set", "mta/deliver/relays/relay[1]/@address", "relay.example:465")[1]
    assert "warning" not in run("set", "mta/queue/retry_maxtime", "5d")[1]
    out = run("set", "mta/deliver/relays/relay[+]", "address=relay.example:465", "destdomains=far.example")[1]
    assert out.count(words) == 1


def test_it_says_what_needs_a_restart(run: Run) -> None:
    _, out, _ = run("set", "mta/queue/journal", "maxage=5s", "maxsize=1G")
    names = "mta/queue/journal/maxage, mta/queue/journal/maxsize"
    assert f"FILE: a running server has to be restarted: {names} can't change while it runs\n" in out


def test_it_says_that_mail_goes_by_mx_without_a_default_relay(run: Run) -> None:
    text = "FILE: no default relay is left: mail that no relay takes goes to the MX hosts of its domain\n"
    assert text not in run("set", "mta/deliver/relays/relay[1]/@address", "127.0.0.1:8026")[1]
    status, out, _ = run("unset", "mta/deliver/relays/relay[1]")
    assert status == 0
    assert text in out
    assert text not in run("set", "mta/deliver/relays/relay[+]/@address", "127.0.0.1:8026")[1]


def test_what_changes_no_value_in_force_says_so(run: Run) -> None:
    assert "FILE: every value in force stays as it is\n" in run("set", "mta/queue/retry_maxtime", "3d")[1]
    status, out, _ = run("set", "mta/queue/retry_maxtime", "3d")
    assert (status, out) == (0, "FILE: nothing to change\n")


def test_a_dry_run_shows_the_difference_and_changes_nothing(file: Path, run: Run) -> None:
    old = file.read_bytes()
    status, out, _ = run("set", "--dry-run", "directory/domains", "example.net", "example.org")
    assert status == 0
    assert "--- FILE\n+++ FILE (changed)\n@@ " in out
    assert "\n-    <domains>example.net</domains> " in out
    assert "\n+    <domains>example.net | example.org</domains> " in out
    assert "SIGHUP is enough" in out
    assert "the former text" not in out
    assert (file.read_bytes(), os.listdir(file.parent)) == (old, os.listdir(file.parent))
    assert not os.path.exists(f"{file}~")


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["set", "mta/queue/minfree", "x"], 78, 'FILE:54: <minfree> is "x": write a size'),
        (
            ["set", "mta/deliver/relays/relay[+]", "address=r.example"],
            78,
            f"FILE:{SECOND_RELAY}: this is a second default relay",
        ),
        (["set", "mta/deliver/relays/relay/@address", "127.0.0.1:2525"], 78, "FILE:147: relay 127.0.0.1:2525 is listener"),
        (["unset", "directory/postmaster"], 78, "FILE:28: <directory> has local domains but no <postmaster>"),
        (["set", "mta/queue/minfre", "0"], 64, "mailismus config: there is no setting"),
        (["set", "mta/queue", "0"], 64, 'mailismus config: mta/queue is a block, and "0" is no setting'),
        (["set", "mta/queue/minfree", "0", "1"], 64, "mailismus config: mta/queue/minfree takes one value, not 2"),
        (["set", "mta/queue", "nonsense=1"], 64, "mailismus config: mta/queue has no setting nonsense: it has provider,"),
        (["unset", "mta/deliver/relays/relay[2]"], 64, "mailismus config: there is no relay[2]: there is 1; write"),
    ],
)
def test_what_would_be_wrong_changes_nothing(file: Path, run: Run, words: Sequence[str], status: int, text: str) -> None:
    old = file.read_bytes()
    found, _, err = run(*words)
    assert found == status
    assert err.startswith(text)
    assert ("the file was not changed" in err or "FILE was not changed" in err) == (status == 78)
    assert (file.read_bytes(), os.path.exists(f"{file}~")) == (old, False)


def test_a_file_that_is_no_xml_or_missing_is_refused(file: Path, run: Run) -> None:
    file.write_text("<mailserver>\n<mta>\n")
    words = "Premature end of data in tag mta line 2; <mta>, begun in line 2, is still open"
    assert run("set", "mta/queue/minfree", "0")[::2] == (78, f"FILE:3: this is not well-formed XML: {words}\n")
    file.write_text("<!DOCTYPE mailserver>\n<mailserver/>")
    assert run("unset", "mta/queue/minfree")[::2] == (
        78,
        "FILE:1: a DOCTYPE is not allowed here, nor are entities: remove it\n",
    )
    file.unlink()
    status, _, err = run("set", "mta/queue/minfree", "0")
    assert status == 78
    assert err.startswith("FILE: the configuration file can't be read: No such file or directory: ")


def test_a_bad_value_can_be_mended(file: Path, run: Run) -> None:
    file.write_text(in_queue("<minfree>x</minfree>"))
    status, out, _ = run("set", "mta/queue/minfree", "0")
    assert (status, file.read_text()) == (0, in_queue("<minfree>0</minfree>"))
    assert out.endswith("FILE: written; the former text is in FILE~\n")


def test_another_programs_change_is_not_overwritten(file: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = Replacement.replace

    def late(self: Replacement, data: bytes) -> None:
        file.write_text("<mailserver><!-- edited --></mailserver>")
        replace(self, data)

    monkeypatch.setattr(Replacement, "replace", late)
    status, _, err = run("set", "mta/queue/minfree", "0")
    assert (status, file.read_text()) == (75, "<mailserver><!-- edited --></mailserver>")
    assert err == "FILE was changed by another program meanwhile; it is left as that wrote it; look at it, and try again\n"


def test_a_file_that_can_not_be_written_is_named(file: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Replacement, data: bytes) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Replacement, "replace", fail)
    assert run("set", "mta/queue/minfree", "0")[::2] == (
        77,
        "FILE can't be written: Permission denied; it was not changed\n",
    )


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "latin-1"])
def test_the_encoding_stays(file: Path, run: Run, codec: str) -> None:
    name = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "latin-1": "ISO-8859-1"}[codec]
    text = f'<?xml version="1.0" encoding="{name}"?>\r\n<!-- ü -->\r\n<mailserver>\r\n</mailserver>\r\n'
    file.write_bytes(text.encode(codec))
    assert run("set", "mta/report/ndr_subject", "Fehler: ü ж")[0] == 0
    assert load(str(file)).settings.report.ndr_subject == "Fehler: ü ж"
    assert run("unset", "mta/report/ndr_subject")[0] == 0
    assert file.read_bytes() == text.encode(codec)


def test_equal_files_end_with_0_and_others_with_1(file: Path, run: Run) -> None:
    other = file.with_name("other.xml")
    shutil.copy(file, other)
    assert run("diff", str(other)) == (0, f"FILE: {other} has the same settings\n", "")
    run("set", "mta/queue/minfree", "0")
    run("set", "mta/deliver/relays/relay[+]", "address=b", "destdomains=b.example")
    status, out, _ = run("diff", str(other))
    assert status == 1
    lines = out.splitlines()
    assert lines[0] == f'mta/queue/minfree: "2%" in {other}:54, "0" in FILE:54'
    assert lines[1] == f'mta/deliver/relays/relay[2]/@address: absent in {other}, "b:25" in FILE:{SECOND_RELAY}'
    assert len(lines) == 3  # its defaults are no change of their own
    assert run("diff", str(file.with_name("missing.xml")))[0] == 78


def test_without_a_running_server_the_comparison_ends_with_69(run: Run) -> None:
    status, out, err = run("diff")
    assert (status, out) == (69, "")
    assert err.startswith("this needs the running server, and none listens at ")


def test_the_running_server_tells_its_settings(file: Path, run: Run) -> None:
    before = load(str(file))
    os.makedirs(os.path.dirname(before.settings.admin.socket_path), mode=0o700)
    server = Running(before.settings.admin.socket_path)
    server.task.show_settings(before.effective)
    server.start()
    try:
        assert run("diff") == (0, "FILE: the running server has the same settings\n", "")
        run("set", "mta/queue/minfree", "0")
        run("unset", "mta/queue/retry_delays")
        (file.parent / "users").write_text("alice\ngeheim\n")
        status, out, _ = run("diff")
        assert status == 1
        assert out.splitlines() == [
            "directory/users: the file that it names holds something else than for the running server",
            'mta/queue/minfree: "2%" in the running server, "0" in FILE:54, restart needed',
        ]
        server.task.show_settings(load(str(file)).effective)
        assert run("diff")[0] == 0
    finally:
        server.stop()


def test_a_limit_that_gave_way_is_no_difference(file: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = load(str(file))
    os.makedirs(os.path.dirname(before.settings.admin.socket_path), mode=0o700)
    server = Running(before.settings.admin.socket_path)
    server.task.show_settings(before.effective)
    server.start()
    try:
        monkeypatch.setattr("mailismus.config.read.load.hard_open_files", lambda: 1024)
        assert any(value.is_lowered for value in load(str(file)).effective)
        assert run("diff")[0] == 0
    finally:
        server.stop()


def test_a_comparison_says_nothing_of_what_secret_files_hold(file: Path, run: Run) -> None:
    users = file.parent / "users"
    users.write_text("alice:secret1\n")
    other = file.with_name("other.xml")
    other.write_text(file.read_text().replace("%DIRCONF%/users", "%DIRCONF%/users2"))
    (file.parent / "users2").write_text("alice:secret2\nbob:secret3\n")
    status, out, err = run("diff", str(other))
    assert status == 1
    assert "secret" not in out + err
    assert "bob" not in out + err


def test_a_value_that_begins_with_a_minus_stands_behind_two_of_them(file: Path, run: Run) -> None:
    file.write_text(in_deliver(""))
    status, _, err = run("set", "--", "mta/deliver/maxrecips", "-1")
    assert (status, err.partition(": ")[0]) == (78, "FILE:3")


def test_every_path_that_is_shown_can_be_set_and_taken_back(file: Path, run: Run) -> None:
    old = file.read_bytes()
    text = old.decode()
    shown = run("show")[1].splitlines()
    assert len(shown) > 70
    for line in shown:
        path, _, rest = line.partition(" = ")
        value = rest.rpartition(" [")[0]
        is_there = is_written(text, parse_path(path))
        status, _, err = run("set", path, value)
        assert (status, err) == (0, ""), path
        if is_there:
            element = re.search(r"[^<>\"]*", text[_value_place(text, path) :])
            assert element is not None
            assert run("set", path, element[0])[0] == 0
        else:
            assert file.read_bytes() != old
            assert run("unset", path)[0] == 0
        assert file.read_bytes() == old, path


def _value_place(text: str, path: str) -> int:
    """Where the value of a setting begins in the sample."""
    *names, last = path.split("/")
    place = 0
    for name in names:
        place = text.index(f"<{name}", place)
    return (
        text.index(f' {last[1:]}="', place) + len(last) + 2
        if last[0] == "@"
        else text.index(f"<{last}>", place) + len(last) + 2
    )


def test_a_queue_in_services_is_named_and_left_by_one_change_each(file: Path, run: Run) -> None:
    """Its settings can't stand beside another provider, nor that provider's beside it."""
    secret = file.parent / "secret"
    secret.write_text("secret\n")
    secret.chmod(0o600)
    to = ["mta/queue", "provider=distributed", "objects/username=mail", f"objects/passwordfile={secret}"]
    status, _, err = run("set", *to)
    assert (status, "<maxclustersize> belongs to provider clustered" in err) == (78, True)
    local = ["mta/queue/maxclustersize", "mta/queue/journal", "mta/queue/spool"]
    assert run("set", *to, "--unset", *local)[::2] == (0, "")
    assert load(str(file), Loader(providers=PROVIDERS.names)).settings.queue.provider == "distributed"
    status, _, err = run("set", "mta/queue", "provider=clustered")
    assert (status, "<objects> belongs to provider distributed" in err) == (78, True)
    assert run("unset", "mta/queue/objects")[0] == 78
    assert run("set", "mta/queue", "provider=clustered", "--unset", "mta/queue/objects")[::2] == (0, "")
    assert f'passwordfile="{secret}"' not in file.read_text()
    assert load(str(file)).settings.queue.provider == "clustered"
    assert run("set", "mta/queue", "provider=log", "--unset", "mta/queue/nothing")[0] == 64
