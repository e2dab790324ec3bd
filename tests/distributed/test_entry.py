"""The shared queue as a provider: its settings, its own directory, and what it refuses."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.task import Clock

from mailismus.__main__ import main
from mailismus.config.read.document import parse
from mailismus.config.read.load import LoadedConfig, load_tree
from mailismus.config.values.services import ServicesSettings
from mailismus.disk.posix import PosixDisk
from mailismus.errors import ConfigError, StartError
from mailismus.queue.files.mark import MARK
from mailismus.queue.providers.distributed.clients import make_clients
from mailismus.queue.providers.distributed.entry import PROVIDER
from mailismus.queue.providers.distributed.opening import open_place
from mailismus.queue.providers.distributed.stores import libraries
from tests.support.processes import free_port

CONFIG = """<mailserver>
<mta>
<queue provider="distributed">
<rootpath>{root}/queue</rootpath>
{inner}
</queue>
</mta>
</mailserver>"""
OBJECTS = '<objects username="joe" passwordfile="{root}/secret"/>'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    secret = tmp_path / "secret"
    secret.write_text("opensesame\n")
    secret.chmod(0o600)
    return tmp_path


def text_of(root: Path, inner: str = OBJECTS) -> str:
    return CONFIG.format(root=root, inner=inner.format(root=root))


def loaded(root: Path, inner: str = OBJECTS) -> LoadedConfig:
    return load_tree(parse(text_of(root, inner).encode(), "f.xml"), "f.xml", "mx.example.net", None)


def services_of(root: Path, inner: str = OBJECTS) -> ServicesSettings:
    services = loaded(root, inner).settings.queue.services
    assert services is not None
    return services


def test_the_credentials_of_the_object_store_are_all_that_must_be_written(root: Path) -> None:
    services = services_of(root)
    assert services.rabbitmq.hosts == (("127.0.0.1", 5672),)
    assert (services.rabbitmq.vhost, services.rabbitmq.prefetch, services.rabbitmq.login.username) == ("/", 1000, "guest")
    assert services.cassandra.hosts == (("127.0.0.1", 9042),)
    assert (services.cassandra.keyspace, services.cassandra.replication) == ("mailismus", 3)
    assert (services.objects.is_swift, services.objects.bucket, services.objects.login.username) == (
        False,
        "mailismus",
        "joe",
    )
    assert (services.view.slicewindow_s, services.view.bucketcount) == (3600, 1)
    assert (services.view.updatebrowsestartpace, services.view.keep_s) == (1000, 86400.0)
    assert services.view.sizemetrics


def test_everything_may_be_written(root: Path) -> None:
    services = services_of(
        root,
        '<rabbitmq hosts="a.example, [2001:db8::1]:5671" vhost="mail" prefetch="7" username="m" '
        'passwordfile="{root}/secret"/>'
        '<cassandra hosts="b.example" datacenter="dc-2" keyspace="k_1" replication="1" username="n"/>'
        '<objects kind="swift" url="https://c.example:443" region="eu-1" bucket="a-bucket" username="acc:joe" '
        'passwordfile="{root}/secret"/>'
        "<view><slicewindow>90s</slicewindow><bucketcount>3</bucketcount>"
        "<updatebrowsestartpace>20</updatebrowsestartpace><keep>2h</keep><sizemetrics>N</sizemetrics></view>",
    )
    assert services.rabbitmq.hosts == (("a.example", 5672), ("2001:db8::1", 5671))
    assert services.rabbitmq.login.password is not None
    assert services.cassandra.hosts == (("b.example", 9042),)
    assert (services.cassandra.datacenter, services.cassandra.login.username) == ("dc-2", "n")
    assert services.objects.is_swift
    assert (services.view.slicewindow_s, services.view.keep_s, services.view.sizemetrics) == (90, 7200.0, False)


@pytest.mark.parametrize(
    ("inner", "line", "what"),
    [
        ("", 3, "<objects> has no username"),
        ('\n<objects username="joe"/>', 6, "<objects> has no passwordfile"),
        ('<objects username="joe" passwordfile="{root}/none"/>', 5, "attribute passwordfile"),
        (OBJECTS + '\n<cassandra keyspace="Mail"/>', 6, "a keyspace's name"),
        (OBJECTS + '\n<rabbitmq hosts=""/>', 6, "hosts"),
        (OBJECTS + '\n<rabbitmq ca="{root}/none"/>', 6, "attribute ca of <rabbitmq>"),
        ('<objects username="j" passwordfile="{root}/secret" ca="{root}/secret"/>', 5, "attribute ca of <objects>"),
        ('<objects username="j" passwordfile="{root}/secret" url="ftp://x"/>', 5, "http://HOST:PORT"),
        (OBJECTS + "\n<view>\n<slicewindow>1500ms</slicewindow></view>", 7, "whole number of seconds"),
        (OBJECTS + "\n<view><sizemetrics>maybe</sizemetrics></view>", 6, "sizemetrics"),
        (OBJECTS + "\n<journal/>", 6, "<journal> belongs to provider clustered and log"),
    ],
)
def test_what_can_t_be_used_is_refused_with_its_line(root: Path, inner: str, line: int, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as refused:
        loaded(root, inner)
    assert (refused.value.file, refused.value.line) == ("f.xml", line)


def test_another_provider_has_none_of_it(root: Path) -> None:
    text = text_of(root).replace('"distributed"', '"clustered"')
    with pytest.raises(ConfigError, match="<objects> belongs to provider distributed") as refused:
        load_tree(parse(text.encode(), "f.xml"), "f.xml", "mx.example.net", None)
    assert refused.value.line == 5
    bare = text.replace(OBJECTS.format(root=root), "")
    assert load_tree(parse(bare.encode(), "f.xml"), "f.xml", "mx.example.net", None).settings.queue.services is None


def test_a_changed_password_is_no_change_of_the_settings(root: Path) -> None:
    before = loaded(root)
    (root / "secret").write_text("another\n")
    assert loaded(root).effective == before.effective


def test_a_start_without_the_packages_names_file_and_line(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "PACKAGES", {"no_such_module": "no-such-package"})
    config = loaded(root)
    nothing: Any = None
    with pytest.raises(StartError) as refused:
        PROVIDER.open(config.settings.queue, nothing, nothing, lambda recipient: False)
    located = config.locate(refused.value, "f.xml")
    assert str(located).startswith("f.xml:3: provider distributed needs no-such-package, not installed here: pip install")
    assert not (root / "queue").exists()


def test_a_password_that_went_since_is_told_with_its_line(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "PACKAGES", {})
    config = loaded(root)
    services = services_of(root)
    (root / "secret").unlink()
    nothing: Any = None
    with pytest.raises(StartError) as refused:
        make_clients(services, Clock(), nothing, lambda: 0.0)
    assert str(config.locate(refused.value, "f.xml")).startswith("f.xml:5: passwordfile of <objects>: ")


def test_a_server_has_a_name_of_its_own_for_ever(root: Path) -> None:
    path, disk = str(root / "queue"), PosixDisk()
    place = open_place(disk, path, "mx", lambda bits: 255)
    assert place.name == "mx 00000000000000ff"
    assert (root / "queue" / MARK).read_text() == "distributed 2\n"
    with pytest.raises(StartError, match="another server holds") as refused:
        open_place(disk, path, "mx", lambda bits: 1)
    assert refused.value.status == os.EX_TEMPFAIL
    place.lock.release()
    again = open_place(disk, path, "mx", lambda bits: 1)
    assert again.name == place.name
    again.lock.release()
    copied = open_place(disk, path, "another-host", lambda bits: 1)
    assert copied.name != place.name
    copied.lock.release()


@pytest.mark.parametrize("content", ["", "not a name\n", "00000000000000FF\n", "0" * 200])
def test_a_damaged_name_refuses_the_start(root: Path, content: str) -> None:
    path = str(root / "queue")
    open_place(PosixDisk(), path, "mx", lambda bits: 255).lock.release()
    (root / "queue" / "server" / "name").write_text(content)
    with pytest.raises(StartError, match="holds no name of a server") as refused:
        open_place(PosixDisk(), path, "mx", lambda bits: 255)
    assert refused.value.status == os.EX_DATAERR


def test_the_directory_of_another_provider_is_refused(root: Path) -> None:
    path = root / "queue"
    path.mkdir(0o700)
    (path / MARK).write_text("log 1\n")
    with pytest.raises(StartError, match="holds a queue of provider log") as refused:
        open_place(PosixDisk(), str(path), "mx", lambda bits: 255)
    assert refused.value.status == os.EX_CONFIG
    assert sorted(name.name for name in path.iterdir()) == [MARK]


def test_what_only_a_queue_in_files_can_do_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = root / "c.xml"
    config.write_text(text_of(root))
    open_place(PosixDisk(), str(root / "queue"), socket.gethostname(), lambda bits: 255).lock.release()
    before = sorted(str(path) for path in root.rglob("*"))
    directory = str(root / "queue")
    for words, status in (
        (["queue", "convert", "--to", "distributed"], os.EX_USAGE),
        (["queue", "list", "--queue", directory], os.EX_USAGE),
        (["fsck", "--queue", directory], os.EX_USAGE),
        (["dump", str(root / "c.xml")], os.EX_DATAERR),
        (["dump", str(root / "queue" / "server")], os.EX_DATAERR),
    ):
        assert main(["--config", str(config), *words]) == status, words
        message = capsys.readouterr().err
        assert "distributed" in message or "services" in message or "no file of a queue" in message
        assert len(message.splitlines()) == 1
    assert sorted(str(path) for path in root.rglob("*")) == before


def test_the_files_of_a_server_are_printed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_place(PosixDisk(), str(root / "queue"), "mx", lambda bits: 255).lock.release()
    for name, text in (("server/name", "HOST 00000000000000ff"), ("lock", "lock of a server"), ("provider", "distributed")):
        assert main(["dump", str(root / "queue" / name)]) == os.EX_OK
        assert text in capsys.readouterr().out
    (root / "queue" / "server" / "name").write_text("garbled")
    assert main(["dump", str(root / "queue" / "server" / "name")]) == os.EX_DATAERR


def test_other_programs_do_not_write_into_it(root: Path) -> None:
    assert PROVIDER.open_writer(loaded(root).settings.queue) is None


def test_commands_without_the_packages_name_file_and_line(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "PACKAGES", {"no_such_module": "no-such-package"})
    config = root / "c.xml"
    config.write_text(text_of(root))
    for words in (["queue", "list"], ["queue", "hold", "--all", "--reason", "x"], ["fsck"], ["dump", "00000000000000FF"]):
        assert main(["--config", str(config), *words]) == os.EX_CONFIG, words
        assert capsys.readouterr().err.startswith(f"{config}:3: provider distributed needs no-such-package")


def test_setup_of_a_queue_in_files_has_nothing_to_do(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = root / "c.xml"
    config.write_text(text_of(root, "").replace('"distributed"', '"log"'))
    assert main(["--config", str(config), "queue", "setup"]) == os.EX_OK
    assert capsys.readouterr().out.startswith("Nothing to set up: a queue of provider log lies in files")
    assert not (root / "queue").exists()


def test_setup_without_the_packages_names_file_and_line(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "PACKAGES", {"no_such_module": "no-such-package"})
    config = root / "c.xml"
    config.write_text(text_of(root))
    assert main(["--config", str(config), "queue", "setup"]) == os.EX_CONFIG
    assert capsys.readouterr().err.startswith(f"{config}:3: provider distributed needs no-such-package")


@pytest.mark.parametrize("provider", ["distributed", "clustered"])
def test_a_check_of_the_configuration_says_which_packages_are_missing(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setattr(libraries, "PACKAGES", {"no_such_module": "no-such-package"})
    config = root / "c.xml"
    shared = provider == "distributed"
    config.write_text(text_of(root, OBJECTS if shared else "").replace("distributed", provider))
    status = main(["--config", str(config), "config", "check"])
    said = capsys.readouterr()
    refusal = f"{config}:3: provider distributed needs no-such-package, not installed here: pip install"
    assert (status == os.EX_CONFIG, refusal in said.err) == (shared, shared), said


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["queue", "list"], os.EX_TEMPFAIL),
        (["queue", "hold", "--all", "--reason", "x"], os.EX_TEMPFAIL),
        (["queue", "setup"], os.EX_UNAVAILABLE),
        (["dump", "00000000000000FF"], os.EX_TEMPFAIL),
    ],
)
def test_a_command_that_asks_the_services_leaves_nothing_open(
    root: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int
) -> None:
    config, port = root / "c.xml", free_port()
    config.write_text(text_of(root, f'<rabbitmq hosts="127.0.0.1:{port}"/><cassandra hosts="127.0.0.1:{port}"/>{OBJECTS}'))
    assert main(["--config", str(config), *words]) == status, capsys.readouterr().err  # the driver's own loop stays
    before = os.listdir("/proc/self/fd")
    assert main(["--config", str(config), *words]) == status
    assert os.listdir("/proc/self/fd") == before
