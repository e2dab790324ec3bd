"""Loading: what a file says, what is in force without it, and how every kind of fault is told."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from mailismus.config.read.document import parse
from mailismus.config.read.load import LoadedConfig, default_settings, load, load_tree
from mailismus.config.values.settings import DestinationSettings, ScheduleSettings
from mailismus.errors import ConfigError
from mailismus.mail.networks import Networks
from tests.config.corpus import BROKEN, GOOD, Broken, in_deliver, in_directory, in_listeners, in_report, in_server

FILE = "/srv/mail/config/mailismus.xml"


def load_text(text: str, hard_limit: int | None = None, file: str = FILE) -> LoadedConfig:
    return load_tree(parse(text.encode(), file), file, "mx.example.net", hard_limit)


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_a_good_file_loads(text: str) -> None:
    assert load_text(text).settings.file == FILE


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_a_broken_file_is_refused_with_line_and_words(broken: Broken) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(broken.text)
    assert (caught.value.file, caught.value.line) == (FILE, broken.line)
    assert broken.words in caught.value.text


def test_all_defaults_are_in_force_without_any_block() -> None:
    settings = load_text("<mailserver/>").settings
    assert (
        settings == load_text("<mailserver><mta><queue/><submit/><deliver><client/></deliver></mta></mailserver>").settings
    )
    assert settings.application.announcehost == b"mx.example.net"
    assert settings.application.stop_timeout_s == 30
    (listener,) = settings.listeners
    assert (listener.name, listener.interface, listener.port) == ("SMTP", "", 25)
    assert listener.server.relay_clients == Networks()
    assert (listener.server.maxmsgsize, listener.server.maxrecips, listener.server.maxbadreqs) == (50_000_000, 1000, 10)
    assert settings.queue.rootpath == "/srv/mail/var/queue"
    assert settings.queue.spool.rootpath == "/srv/mail/var/spool"
    assert settings.queue.retry.delays_s == (900, 1800, 7200, 14400)
    assert settings.queue.minfree.share == 0.02
    assert settings.queue.journal.segmentsize == 32 * 2**20
    assert settings.deliver.relays == ()
    assert settings.deliver.interval_low_s == 0.1
    assert settings.deliver.client.timeout_final_s == 600
    assert settings.admin.socket_path == "/srv/mail/var/run/admin.sock"
    assert settings.directory.postmaster == b""


def test_the_defaults_of_reports() -> None:
    report = load_text("<mailserver/>").settings.report
    assert (report.queuecache, report.generate_ndr, report.attachmsg) == (100, True, 4000)
    assert (report.interval_low_s, report.interval_high_s, report.interval_error_s, report.delay_start_s) == (5, 60, 180, 0)
    assert (report.ndr_from, report.ndr_subject) == (b"postmaster@mx.example.net", "Delivery Failure Report")


def test_reports_are_from_postmaster_at_the_first_local_domain(tmp_path: Path) -> None:
    (tmp_path / "domains").write_text("# ours\nz.example\na.example\n")
    for domains, first in (("z.example|a.example", b"z"), ("a.example|z.example", b"a"), (f"{tmp_path}/domains", b"z")):
        text = in_directory(f"<domains>{domains}</domains><users>alice</users><postmaster>alice</postmaster>")
        assert load_text(text).settings.report.ndr_from == b"postmaster@" + first + b".example"


def test_what_reports_say_is_read() -> None:
    report = load_text(
        in_report("<ndr_from>Mail.Desk@Example.net</ndr_from><ndr_subject> Not \n sent: \u00fc </ndr_subject>")
    ).settings.report
    assert (report.ndr_from, report.ndr_subject) == (b"Mail.Desk@Example.net", "Not sent: \u00fc")


def test_default_settings_are_those_of_an_empty_file() -> None:
    assert default_settings("/srv/mail") == load_text("<mailserver/>").settings


def test_directories_follow_one_another() -> None:
    text = "<mailserver><application><dirpaths><root>/r</root><var>v/%SYSNAME%</var></dirpaths></application></mailserver>"
    application = load_text(text).settings.application
    assert application.var_path == "/r/v/mx.example.net"
    assert application.logs_path == "/r/var/logs"
    assert application.config_path == "/r/config"


def test_networks_are_as_written() -> None:
    settings = load_text(in_server("<relay_clients>192.168/16 | ::1</relay_clients>")).settings
    blocks = [ipaddress.ip_network("192.168.0.0/16"), ipaddress.ip_network("::1")]
    assert settings.listeners[0].server.relay_clients == Networks.of(blocks)


def test_listeners_without_a_name_are_numbered_around_those_with_one() -> None:
    text = in_listeners('<listener port="1"/><listener port="2" name="SMTP2"/><listener port="3"/>')
    assert [listener.name for listener in load_text(text).settings.listeners] == ["SMTP", "SMTP2", "SMTP3"]


def test_relays_keep_order_and_line() -> None:
    text = in_deliver(
        '<relays>\n<relay\naddress="[2001:db8::1]:587" destdomains="A.example,b.example"/>\n'
        '<relay address="r.example"/></relays>'
    )
    first, second = load_text(text).settings.deliver.relays
    assert (first.host, first.port, first.destdomains, first.line) == ("2001:db8::1", 587, (b"a.example", b"b.example"), 5)
    assert (second.address, second.host, second.port, second.destdomains, second.line) == (
        "r.example:25",
        "r.example",
        25,
        (),
        7,
    )


def test_a_relay_may_be_for_senders_in_some_networks() -> None:
    text = in_deliver('<relays><relay address="r" senders="C.example,Joe@d.example" sendernets="10/8,::1"/></relays>')
    (relay,) = load_text(text).settings.deliver.relays
    assert relay.senders == (b"c.example", b"joe@d.example")
    assert relay.sendernets is not None
    assert ["10.1.2.3" in relay.sendernets, "::1" in relay.sendernets, "192.0.2.1" in relay.sendernets] == [
        True,
        True,
        False,
    ]


def test_destinations_keep_order_line_and_what_they_do_not_say() -> None:
    text = in_deliver(
        '<destinations>\n<destination domains="Mail.example, *.MAIL.example" maxserverconnections="5"\n'
        'messages_per_minute="600"/>\n<destination domains="b.example" recipients_per_minute="0"/></destinations>'
    )
    assert load_text(text).settings.deliver.destinations == (
        DestinationSettings((b"mail.example", b"*.mail.example"), 5, 600, None, 5),
        DestinationSettings((b"b.example",), None, None, 0, 7),
    )


def test_the_defaults_of_the_schedule_and_of_rates() -> None:
    deliver = load_text("<mailserver/>").settings.deliver
    assert (deliver.messages_per_minute, deliver.recipients_per_minute, deliver.destinations) == (0, 0, ())
    assert deliver.schedule == ScheduleSettings(20, 10, 3, 5.0, 300.0, 300.0, 7200.0, 7200.0)


@pytest.mark.parametrize(
    ("delays", "schedule", "retry_s", "longest_s", "forget_s", "is_lowered"),
    [
        ("15m | 4h", "", 300, 7200, 7200, False),
        ("1s", "", 1, 1, 7200, True),
        ("1s | 8s | 2s", "", 1, 8, 7200, True),
        ("10m | 30m", "", 300, 1800, 7200, False),
        ("1s", "<retry_host>5m</retry_host>", 300, 7200, 7200, False),
        ("15m", "<forget_host>10m</forget_host>", 300, 600, 600, False),
        ("15m", "<forget_host>1m</forget_host>", 300, 300, 60, False),
    ],
)
def test_hosts_are_left_alone_no_longer_than_the_retry_delays_unless_the_file_says_so(
    delays: str, schedule: str, retry_s: float, longest_s: float, forget_s: float, is_lowered: bool
) -> None:
    text = (
        f"<mailserver><mta><queue><retry_delays>{delays}</retry_delays></queue><deliver><schedule>{schedule}</schedule>"
        "</deliver></mta></mailserver>"
    )
    loaded = load_text(text)
    found = loaded.settings.deliver.schedule
    assert (found.retry_host_s, found.max_retry_host_s, found.forget_host_s) == (retry_s, longest_s, forget_s)
    (value,) = (value for value in loaded.effective if value.path == "mta/deliver/schedule/retry_host")
    assert (value.is_lowered, value.lowered_to_fit) == (is_lowered, "the shortest of <retry_delays>" if is_lowered else "")
    assert value.text == ("1s" if is_lowered else "5m")


def test_name_servers_have_port_53_by_default() -> None:
    dns = load_text(in_deliver('<dns servers="192.0.2.1 | [::1]:5353"/>')).settings.deliver.dns
    assert (dns.servers, dns.timeout_s, dns.are_trusted) == ((("192.0.2.1", 53), ("::1", 5353)), 5.0, False)
    assert load_text(in_deliver('<dns trustad="Y"/>')).settings.deliver.dns.are_trusted


def test_names_come_from_files_too(tmp_path: Path) -> None:
    (tmp_path / "users").write_bytes(b"\xef\xbb\xbf# people\r\nAlice:secret:x\r\n\r\n  bob # the other\nalice")
    text = in_directory(f"<domains>example.net</domains><users>carol | {tmp_path}/users</users><postmaster>bob</postmaster>")
    directory = load_text(text).settings.directory
    assert directory.users == {b"alice", b"bob", b"carol"}
    assert directory.postmaster == b"bob"


@pytest.mark.parametrize("name", ["../evil", ".", "a b", "/etc", "é"])
def test_a_bad_name_in_a_file_is_told_with_file_and_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "users").write_text(f"alice\n\n{name}\n")
    with pytest.raises(ConfigError) as caught:
        load_text(in_directory(f"<users>{tmp_path}/users</users>"))
    assert caught.value.line == 3
    assert f"{tmp_path}/users line 3: " in caught.value.text


def test_a_default_gives_way_to_the_open_file_limit_written_or_not() -> None:
    for text in ("<mailserver/>", in_server("<maxconnections>2000</maxconnections>")):
        loaded = load_text(text, hard_limit=4096)
        assert 16 < loaded.settings.listeners[0].server.maxconnections < 2000
        assert 16 < loaded.settings.deliver.maxconnections < 2500
        assert len(loaded.notes) == 2
        assert (
            any(value.is_lowered and value.path.endswith("server/maxconnections") for value in loaded.effective)
            or text == "<mailserver/>"
        )


def test_a_limit_that_was_set_is_refused_where_it_does_not_fit() -> None:
    with pytest.raises(
        ConfigError, match=r":4: <maxconnections> of <server> is \"9000\".*hard open-file limit is 4096.*at most 1904"
    ):
        load_text(in_server("<maxconnections>9000</maxconnections>"), hard_limit=4096)
    assert (
        load_text(in_server("<maxconnections>1904</maxconnections>"), hard_limit=4096)
        .settings.listeners[0]
        .server.maxconnections
        == 1904
    )


def test_effective_values_say_where_they_come_from() -> None:
    values = {value.path: value for value in load_text(in_server("<maxrecips>\n7</maxrecips>")).effective}
    assert (
        values["mta/submit/listeners/listener/server/maxrecips"].text,
        values["mta/submit/listeners/listener/server/maxrecips"].line,
    ) == ("7", 4)
    assert (values["mta/queue/retry_delays"].text, values["mta/queue/retry_delays"].line) == ("15m | 30m | 2h | 4h", 0)


def test_the_default_listener_is_among_the_effective_values() -> None:
    values = {value.path: value.text for value in load_text("<mailserver/>").effective}
    assert values["mta/submit/listeners/listener/@port"] == "25"


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^{tmp_path}/x.xml: "):
        load(str(tmp_path / "x.xml"))
