"""Changes between two configurations: by name, by place, by what files hold; and which of them need a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailismus.config.read.changes import SettingChange, names_of, what_changed
from mailismus.config.read.document import parse
from mailismus.config.read.load import load_tree
from mailismus.config.values.effective import Effective
from tests.config.corpus import in_deliver, in_directory, in_listeners, in_queue, in_server
from tests.config.test_generated import SETTING_IDS, SETTINGS

TWO = '<listener name="A" port="25"/><listener name="B" port="26"/>'


def in_application(inner: str) -> str:
    return f"<mailserver><application>{inner}</application></mailserver>"


def values(text: str) -> tuple[Effective, ...]:
    return load_tree(parse(text.encode(), "f"), "/srv/mail/config/m.xml", "mx.example.net", None).effective


def changes(old: str, new: str) -> tuple[SettingChange, ...]:
    return what_changed(values(old), values(new))


def test_the_same_written_otherwise_is_no_change() -> None:
    assert changes("<mailserver/>", in_queue("<retry_maxtime>4320m</retry_maxtime><minfree>2.0%</minfree>")) == ()


def test_a_change_has_its_name_both_values_and_its_line() -> None:
    (change,) = changes(in_server("<maxrecips>5</maxrecips>"), in_server("\n<maxrecips>6</maxrecips>"))
    assert change == SettingChange("mta/submit/listeners/listener/server/maxrecips", "5", "6", 5, False)
    assert str(change) == 'mta/submit/listeners/listener/server/maxrecips ("5" before, "6" now)'
    (change,) = changes(in_server("<maxrecips>5</maxrecips>"), "<mailserver/>")
    assert (change.new, change.line) == ("1000", 0)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (in_deliver('<relays><relay address="r.example"/></relays>'), {"mta/deliver/relays/relay/@address"}),
        (in_deliver("<client><timeout>1m</timeout></client>"), {"mta/deliver/client/timeout"}),
        (in_deliver("<schedule><backlog>5</backlog></schedule>"), {"mta/deliver/schedule/backlog"}),
        (in_deliver("<recipients_per_minute>5</recipients_per_minute>"), {"mta/deliver/recipients_per_minute"}),
        (
            in_deliver('<destinations><destination domains="a" maxserverconnections="1"/></destinations>'),
            {
                "mta/deliver/destinations/destination/@domains",
                "mta/deliver/destinations/destination/@maxserverconnections",
            },
        ),
        (
            in_queue("<retry_delays>1m</retry_delays>"),
            {"mta/queue/retry_delays", "mta/deliver/schedule/retry_host"},
        ),
        (in_queue("<retry_delays>1m</retry_delays>"), {"mta/queue/retry_delays"}),
        (in_directory("<users>joe</users>"), {"directory/users"}),
        (in_server("<relay_clients>10/8</relay_clients>"), {"mta/submit/listeners/listener/server/relay_clients"}),
        (in_application("<stop_timeout>1m</stop_timeout>"), {"application/stop_timeout"}),
    ],
)
def test_what_a_running_server_takes_over(text: str, names: set[str]) -> None:
    found = changes("<mailserver/>", text)
    assert names <= set(names_of(found))
    assert not any(change.is_fixed for change in found)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (in_queue("<rootpath>/q</rootpath>"), "mta/queue/rootpath"),
        (in_queue("<spool><rootpath>/s</rootpath></spool>"), "mta/queue/spool/rootpath"),
        (in_queue("<spool><maxspidcache>7</maxspidcache></spool>"), "mta/queue/spool/maxspidcache"),
        (in_queue("<journal><maxsize>1G</maxsize></journal>"), "mta/queue/journal/maxsize"),
        (in_listeners('<listener port="26"/>'), "mta/submit/listeners/listener/@port"),
        (in_listeners('<listener interface="::1"/>'), "mta/submit/listeners/listener/@interface"),
        ("<mailserver><admin><socket>/a</socket></admin></mailserver>", "admin/socket"),
        (in_application("<dirpaths><logs>/l</logs></dirpaths>"), "application/dirpaths/logs"),
    ],
)
def test_what_needs_a_restart(text: str, name: str) -> None:
    assert [change.path for change in changes("<mailserver/>", text) if change.is_fixed] == [name]


def test_another_directory_moves_what_lies_in_it_by_default() -> None:
    moved = in_application("<dirpaths><var>/v</var></dirpaths>")
    assert {change.path for change in changes("<mailserver/>", moved) if change.is_fixed} >= {
        "application/dirpaths/var",
        "mta/queue/rootpath",
        "mta/queue/spool/rootpath",
        "admin/socket",
    }


def test_listeners_that_come_or_go_need_a_restart() -> None:
    one, two = in_listeners('<listener name="A" port="25"/>'), in_listeners(TWO)
    for old, new in ((one, two), (two, one)):
        assert any(change.is_fixed for change in changes(old, new))
        assert all("listener" in change.path for change in changes(old, new))
    assert any(change.is_fixed for change in changes(two, in_listeners(TWO.replace("A", "C"))))


def test_relays_that_come_or_go_do_not() -> None:
    one = '<relays><relay address="a"/></relays>'
    two = '<relays><relay address="a"/><relay address="b" destdomains="b.example"/></relays>'
    for old, new in ((one, two), (two, one)):
        found = changes(in_deliver(old), in_deliver(new))
        assert found
        assert not any(change.is_fixed for change in found)
        assert {name.rpartition("/")[0] for name in names_of(found)} == {"mta/deliver/relays/relay"}


def test_a_value_that_moves_to_another_listener_is_a_change() -> None:
    server = "<server><maxrecips>5</maxrecips></server>"
    first = in_listeners(f'<listener name="A" port="25">{server}</listener><listener name="B" port="26"/>')
    second = in_listeners(f'<listener name="A" port="25"/><listener name="B" port="26">{server}</listener>')
    assert [(change.old, change.new) for change in changes(first, second)] == [("5", "1000"), ("1000", "5")]


def test_what_a_named_file_holds_counts(tmp_path: Path) -> None:
    users, text = tmp_path / "users", in_directory(f"<users>{tmp_path}/users</users>")
    users.write_text("joe\n")
    before = values(text)
    users.write_text("# people\nJoe\n")
    assert what_changed(before, values(text)) == ()
    users.write_text("joe\njane\n")
    (change,) = what_changed(before, values(text))
    assert str(change) == "directory/users (the file that it names holds something else)"
    assert not change.is_fixed


@pytest.mark.parametrize(("block", "setting"), SETTINGS, ids=SETTING_IDS)
def test_the_sample_and_the_schema_say_what_needs_a_restart(block: object, setting: object) -> None:
    from mailismus.config.generate.schema import write_setting
    from mailismus.config.table.words import Setting

    assert isinstance(setting, Setting)
    assert ("A change needs a restart." in "".join(write_setting(setting))) is setting.fixed


def test_of_a_new_block_what_is_written_has_changed() -> None:
    one = '<relays><relay address="a">{}</relay></relays>'
    bare, named, empty = (in_deliver(one.format(tls)) for tls in ("", '<tls name="b.example" level="verify"/>', "<tls/>"))
    for old, new in ((bare, named), (named, bare)):
        assert names_of(changes(old, new)) == (
            "mta/deliver/relays/relay/tls/@level",
            "mta/deliver/relays/relay/tls/@name",
        )
    assert changes(bare, empty)
