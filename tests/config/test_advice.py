"""What is wrong with a configuration whose every value is right."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from mailismus.config.advice.host_probe import PathKind, Room, Spot, ThisHost
from mailismus.config.advice.places import advise_places
from mailismus.config.advice.sentence import Advice, AdviceSeverity
from mailismus.config.advice.values import advise
from mailismus.config.read.document import parse
from mailismus.config.read.load import LoadedConfig, load, load_tree
from tests.config.corpus import in_deliver, in_directory, in_listeners, in_queue, in_sendmail, in_server

SERVER_USER = 900
HALF = Room(0.5, 0.5, 10**12)
DIRECTORY = Spot(PathKind.DIRECTORY, 0o700, SERVER_USER)
ROOT_DIRECTORY = Spot(PathKind.DIRECTORY, 0o755, 0, 0, may_make=False)
WELL = {
    "/": ROOT_DIRECTORY,
    "/s": attrs.evolve(ROOT_DIRECTORY, mode=0o755),
    "/s/config": ROOT_DIRECTORY,
    "/s/config/mailismus.xml": Spot(PathKind.FILE, 0o644),
    "/s/var": DIRECTORY,
}


@attrs.define
class FakeGround:
    """A host where everything is as it should be but what a test says."""

    spots: dict[str, Spot] = attrs.Factory(lambda: dict(WELL))
    uid: int = SERVER_USER
    lowest_port: int = 1024
    free: Room | None = HALF
    addresses: frozenset[str] = frozenset({"127.0.0.1", "::1", "192.0.2.1"})
    secrets: frozenset[str] = frozenset()

    def look(self, path: str) -> Spot:
        return self.spots.get(path, Spot(PathKind.MISSING))

    def room(self, path: str) -> Room | None:
        return self.free

    def is_own_address(self, address: str) -> bool:
        return address in self.addresses

    def user_name(self, uid: int) -> str:
        return {0: "root", SERVER_USER: "mailismus"}.get(uid, str(uid))

    def holds_more_than_names(self, path: str) -> bool:
        return path in self.secrets


def loaded(text: str) -> LoadedConfig:
    file = "/s/config/mailismus.xml"
    return load_tree(parse(text.encode(), file), file, "mx.example.net", None)


def advice_of(text: str) -> list[Advice]:
    found = loaded(text)
    return list(advise(found.given, found.settings))


def of_destinations(last: str, maxserverconnections: str) -> str:
    """Destinations, the last of them with that limit, in a file with 50 connections in all."""
    return beside_domains(
        in_deliver(
            f'<destinations>\n{last} maxserverconnections="{maxserverconnections}"/></destinations>'
            "<maxconnections>50</maxconnections><maxserverconnections>20</maxserverconnections>"
        )
    )


def of_schedule(inner: str) -> str:
    return beside_domains(in_deliver(f"<maxconnections>50</maxconnections>\n<schedule>\n{inner}</schedule>"))


def places_of(text: str, ground: FakeGround) -> list[Advice]:
    found = loaded(text)
    return list(advise_places(found.given, found.settings, ground))


def only(advice: list[Advice]) -> tuple[int, str]:
    assert len(advice) == 1, advice
    assert ("; " in advice[0].text) or (": " in advice[0].text)
    return advice[0].line, advice[0].text


LOCAL = "<directory><domains>a.example | b.example</domains><users>joe</users><postmaster>joe</postmaster></directory>"
ANY = "<directory><domains>z.example</domains><users>joe</users><postmaster>joe</postmaster></directory>"


def beside_domains(text: str, directory: str = ANY) -> str:
    """The same with local domains, in the first line."""
    return text.replace("<mailserver>", "<mailserver>" + directory, 1)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            beside_domains(in_deliver('<relays>\n<relay address="r.example" destdomains="a.example"/></relays>'), LOCAL),
            5,
            ['relay r.example:25 never matches: "a.example"', "is local", "remove the relay"],
        ),
        (
            beside_domains(
                in_deliver('<relays>\n<relay address="r" destdomains="b.example,c.example,A.example"/></relays>'), LOCAL
            ),
            5,
            ['"b.example", "a.example" in destdomains of relay r:25 never matches', "they are local"],
        ),
        (
            beside_domains(in_server("<relay_clients>10/8 | 192.0.2.1\n| 10.1.0.0/16</relay_clients>")),
            4,
            ["overlap: 10.1.0.0/16 lies within 10.0.0.0/8; remove it"],
        ),
        (
            beside_domains(in_server("<relay_clients>2001:db8::/32 | 2001:db8::/32</relay_clients>")),
            4,
            ["2001:db8::/32 stands there twice"],
        ),
        (
            beside_domains(in_server("<relay_clients>0.0.0.0/0</relay_clients>")),
            4,
            ["0.0.0.0/0, that is everybody", "an open relay", "your own clients"],
        ),
        (
            beside_domains(in_server("<relay_clients>2000::/3</relay_clients>")),
            4,
            ["2000::/3, that is 42,535,295,865,117,307,932,921,825,928,971,026,432 addresses"],
        ),
        (
            beside_domains(in_queue("<retry_maxtime>1d</retry_maxtime>\n<retry_delays>1h|2d|3d</retry_delays>")),
            5,
            ["make 2d1h up to 2d, but <retry_maxtime> is 1d: what stands behind it never comes"],
        ),
        (
            beside_domains(in_queue("\n<retry_delays>15m|6h|30m</retry_delays><retry_maxtime>5h</retry_maxtime>")),
            5,
            ["make 6h15m up to 6h, but <retry_maxtime> is 5h"],
        ),
        (
            beside_domains(in_queue("<retry_maxtime>10m</retry_maxtime>")),
            3,
            ["begins with 15m, but <retry_maxtime> is 10m", "gets one more, the last", "write shorter delays"],
        ),
        (
            beside_domains(in_queue("<retry_maxtime_reports>1h</retry_maxtime_reports>\n<retry_delays>2h</retry_delays>")),
            5,
            ["begins with 2h, but <retry_maxtime_reports> is 1h", "a report gets one more"],
        ),
        (
            beside_domains(in_queue("<journal>\n<maxsize>64Mi</maxsize></journal>")),
            4,
            ["<segmentsize> is 32Mi", "here 16Mi", "<maxsize>128Mi</maxsize>"],
        ),
        (
            beside_domains("<mailserver>\n<application>\n<announcehost>vm</announcehost></application></mailserver>"),
            3,
            ['<announcehost> is "vm", which is no full name', "<announcehost>mx.example.net</announcehost>"],
        ),
        (
            beside_domains(
                "<mailserver><application>\n<announcehost>vm.localdomain</announcehost></application></mailserver>"
            ),
            2,
            ["vm.localdomain"],
        ),
        (in_server(""), 4, ["listener SMTP takes mail for nobody"]),
        (
            "<mailserver>\n<mta>\n<submit><listeners><listener><server><relay_clients>::1</relay_clients></server></listener>"
            "</listeners></submit></mta>\n<directory>\n<users>joe</users></directory></mailserver>",
            5,
            ["<users> but no <domains>"],
        ),
        (
            beside_domains(in_server("<maxconnections>10</maxconnections>\n<maxpeerconnections>20</maxpeerconnections>")),
            5,
            ["<maxpeerconnections> is 20, more than <maxconnections>, 10"],
        ),
        (beside_domains(in_server("<maxrecips>5</maxrecips>")), 4, ["<maxrecips> is 5", "at least 100"]),
        (beside_domains(in_server("<timeout>2s</timeout>")), 4, ["<timeout> of <server> is 2s", "RFC 5321 4.5.3.2.7"]),
        (
            beside_domains(in_deliver("<client>\n<timeout_final>30s</timeout_final></client>")),
            5,
            ["<timeout_final> of <client> is 30s: a message that is answered later is sent twice"],
        ),
        (
            beside_domains(
                in_deliver("<maxconnections>100</maxconnections>\n<maxserverconnections>200</maxserverconnections>")
            ),
            5,
            ["<maxserverconnections> is 200, more than"],
        ),
        (
            beside_domains(
                in_deliver(
                    "<recipients_per_minute>10</recipients_per_minute>\n<messages_per_minute>11</messages_per_minute>"
                )
            ),
            5,
            ["<messages_per_minute> is 11, more than <recipients_per_minute>, 10, and limits nothing", "write less, or 0"],
        ),
        (
            of_destinations('<destination domains="*.b"\nmaxserverconnections="0"/><destination domains="x"', "100"),
            6,
            ["maxserverconnections is 100, more than <maxconnections>, 50"],
        ),
        (
            of_destinations('<destination domains="x" recipients_per_minute="7" messages_per_minute="8"', "1"),
            5,
            ["messages_per_minute is 8, more than recipients_per_minute, 7"],
        ),
        (
            of_destinations('<destination domains="*.b.c" messages_per_minute="1"/>\n<destination domains="*.a.b.c"', "1"),
            6,
            ['"*.a.b.c" never matches: a wider pattern in line 5 comes before it', "move this destination before that one"],
        ),
        (
            of_destinations('<destination domains="*.c,d" messages_per_minute="1"/>\n<destination domains="a.b.c,c"', "1"),
            6,
            ['"a.b.c" never matches: a wider pattern in line 5'],
        ),
        (
            of_destinations('<destination domains="*.z.example,Z.example"', "1"),
            5,
            ['"z.example" in domains never matches: it is local'],
        ),
        (
            beside_domains(in_deliver('<destinations>\n<destination domains="x.y"/></destinations>')),
            5,
            ["this destination has no limit of its own"],
        ),
        (
            beside_domains(in_deliver('<relays>\n<relay address="192.0.2.9"><tls level="verify"/></relay></relays>')),
            5,
            ["the certificate of this relay must be for 192.0.2.9, an address", "name= in <tls>"],
        ),
        (of_schedule("<max_message_concurrency>26</max_message_concurrency>"), 6, ["is 26, but half", "here 25"]),
        (of_schedule("<backlog>101</backlog>"), 6, ["<backlog> is 101, but a connection takes <maxmessages>, 100"]),
        (of_schedule("<maxage_idle>6m</maxage_idle>"), 6, ["<maxage_idle> is 6m, longer than <maxage_active>, 5m"]),
        (
            of_schedule("<retry_host>3h</retry_host>"),
            6,
            ["<retry_host> is 3h, longer than <forget_host>, 2h", "<forget_host>3h</forget_host>"],
        ),
        (
            beside_domains(in_deliver("<interval_high>1s</interval_high>\n<interval_low>2s</interval_low>")),
            5,
            ["<interval_low> of <deliver> is 2s, longer than <interval_high>, 1s"],
        ),
        (
            beside_domains("<mailserver><mta>\n<report>\n<ndr_from>x@z.example</ndr_from></report></mta></mailserver>"),
            3,
            ["<ndr_from> is x@z.example, who is not one of <users>"],
        ),
    ],
)
def test_a_warning_says_what_was_found_and_what_to_write_at_its_line(text: str, line: int, words: list[str]) -> None:
    found = advice_of(text)
    assert [one.severity for one in found] == [AdviceSeverity.WARNING]
    assert found[0].line == line
    for word in words:
        assert word in found[0].text


@pytest.mark.parametrize(
    "text",
    [
        beside_domains("<mailserver></mailserver>"),
        beside_domains(in_server("<relay_clients>10/8 | 192.168/16 | 2001:db8::/32 | ::1 | 127.0.0.1</relay_clients>")),
        beside_domains(in_queue("<retry_delays>15m|2d</retry_delays>")),
        beside_domains(in_deliver('<relays><relay address="127.0.0.1:8025" destdomains="c.example"/></relays>'), LOCAL),
        beside_domains(
            in_deliver(
                '<destinations><destination domains="a.b.c"/><destination domains="*.b.c,*.a.b.c" messages_per_minute="1"/>'
                '<destination domains="b.c" recipients_per_minute="0" messages_per_minute="9"/></destinations>'
                "<maxconnections>30</maxconnections><maxmessages>1</maxmessages>"
            )
        ),
        beside_domains(
            in_deliver('<destinations><destination domains="a.b"><tls level="verify"/></destination></destinations>')
        ),
        beside_domains(in_deliver('<relays><relay address="192.0.2.9"><tls level="verify" name="a.b"/></relay></relays>')),
        beside_domains(in_deliver('<relays><relay address="a.b"><tls level="verify"/></relay></relays>')),
        in_listeners('<listener interface="127.0.0.1"><server><relay_clients>0.0.0.0/0</relay_clients></server></listener>'),
    ],
)
def test_what_is_well_is_not_warned_of(text: str) -> None:
    assert advice_of(text) == []


@pytest.mark.parametrize(
    ("listener", "address", "severity"),
    [
        ('interface="192.0.2.1" port="2525"', "192.0.2.1:2525", AdviceSeverity.ERROR),
        ('port="2525"', "127.0.0.7:2525", AdviceSeverity.ERROR),
        ('port="2525"', "[::1]:2525", AdviceSeverity.ERROR),
        ('interface="127.0.0.1" port="25"', "localhost", AdviceSeverity.ERROR),
        ('port="25"', "mx.example.net", AdviceSeverity.WARNING),
        ('interface="192.0.2.1" port="2525"', "127.0.0.1:2525", None),
        ('interface="192.0.2.1" port="2525"', "192.0.2.1:25", None),
    ],
)
def test_a_relay_that_is_this_server_is_a_loop(listener: str, address: str, severity: AdviceSeverity | None) -> None:
    text = (
        f"<mailserver>{ANY}<mta><submit><listeners><listener {listener}/></listeners></submit>\n"
        f'<deliver><relays>\n<relay address="{address}"/></relays></deliver></mta></mailserver>'
    )
    found = advice_of(text)
    assert [one.severity for one in found] == [] if severity is None else [severity]
    for one in found:
        assert one.line == 3
        assert "circles" in one.text


def test_a_default_is_told_at_the_line_of_what_is_around_it() -> None:
    text = "<mailserver>\n<mta>\n\n<queue><retry_maxtime>1m</retry_maxtime></queue></mta></mailserver>"
    assert [one.line for one in advice_of(beside_domains(text))] == [4]
    file = "/s/config/mailismus.xml"
    found = load_tree(parse(b"<mailserver>\n\n<application/></mailserver>", file), file, "vm", None)
    (one, *_) = advise(found.given, found.settings)
    assert one.line == 3
    assert one.text.startswith("<announcehost> is not written, and the name of this host, ")


# Places

PLAIN = beside_domains("<mailserver>\n<mta>\n<queue><rootpath>/s/var/queue</rootpath></queue></mta></mailserver>")


def test_places_that_are_well_or_can_be_made_are_not_told_of() -> None:
    ground = FakeGround()
    assert (
        places_of(PLAIN.replace("<mta>", '<mta><submit><listeners><listener port="2525"/></listeners></submit>'), ground)
        == []
    )
    for name in ("queue", "spool", "ms", "run"):
        ground.spots[f"/s/var/{name}"] = DIRECTORY
    ground.lowest_port = 0
    assert places_of(PLAIN, ground) == []


@pytest.mark.parametrize(
    ("path", "spot", "words"),
    [
        ("/s/var/queue", Spot(PathKind.LINK), ["a symbolic link", "write the directory itself"]),
        ("/s/var/queue", Spot(PathKind.FILE), ["which is no directory"]),
        ("/s/var/queue", attrs.evolve(DIRECTORY, mode=0o750), ["open to others (mode 0750): run: chmod 700 /s/var/queue"]),
        (
            "/s/var/queue",
            attrs.evolve(DIRECTORY, uid=5),
            ["belongs to user 5, not to mailismus", "chown -R mailismus /s/var/queue"],
        ),
        ("/s/var", Spot(PathKind.FILE), ["/s/var is no directory"]),
        (
            "/s/var",
            attrs.evolve(DIRECTORY, may_make=False),
            ["does not exist", "may not make it in /s/var", "install -d -m 700 -o mailismus /s/var/queue"],
        ),
    ],
)
def test_a_queue_that_the_start_would_refuse_is_an_error(path: str, spot: Spot, words: list[str]) -> None:
    ground = FakeGround(lowest_port=0)
    ground.spots[path] = spot
    if path == "/s/var":
        for name in ("spool", "ms", "run"):
            ground.spots[f"/s/var/{name}"] = DIRECTORY
    (found,) = places_of(PLAIN, ground)
    assert (found.severity, found.line) == (AdviceSeverity.ERROR, 3)
    for word in ("<rootpath> of <queue>", *words):
        assert word in found.text


def test_one_place_where_nothing_can_be_made_is_told_once() -> None:
    ground = FakeGround(lowest_port=0)
    del ground.spots["/s/var"]
    line, text = only(places_of(PLAIN, ground))
    assert line == 3
    assert text.endswith("user mailismus may not make it in /s: run as root: install -d -m 700 -o mailismus /s/var")
    ground.spots["/s/var"] = attrs.evolve(DIRECTORY, uid=0, may_make=False)
    ground.spots["/s/var/ms"] = attrs.evolve(DIRECTORY, uid=0, may_make=False)
    _, users = places_of(PLAIN, ground)
    assert "<userpath> is /s/var/ms, where user mailismus may not write: run: chown mailismus /s/var/ms" in users.text


def test_a_parent_that_others_can_write_is_an_error_but_for_a_sticky_one() -> None:
    ground = FakeGround(lowest_port=0)
    ground.spots["/s/var/queue"] = DIRECTORY
    ground.spots["/s"] = attrs.evolve(ROOT_DIRECTORY, mode=0o777)
    (found,) = places_of(PLAIN, ground)
    assert "others can write /s (mode 0777): run: chmod go-w /s" in found.text
    ground.spots["/s"] = attrs.evolve(ROOT_DIRECTORY, mode=0o1777)
    assert places_of(PLAIN, ground) == []
    ground.spots["/s"] = attrs.evolve(ROOT_DIRECTORY, mode=0o775)
    assert places_of(PLAIN, ground) == []
    ground.spots["/s"] = attrs.evolve(ROOT_DIRECTORY, mode=0o775, gid=50)
    assert len(places_of(PLAIN, ground)) == 1


def test_root_is_not_told_of_owners() -> None:
    ground = FakeGround(uid=0, lowest_port=0)
    ground.spots["/s/var/queue"] = DIRECTORY
    assert places_of(PLAIN, ground) == []


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_socket_where_others_can_write_is_an_error(mode: int) -> None:
    ground = FakeGround(lowest_port=0)
    ground.spots["/s/var/run"] = attrs.evolve(DIRECTORY, mode=mode, gid=50)
    line, text = only(places_of(PLAIN.replace("\n<mta>", "\n\n<admin><socket>%DIRVAR%/run/s</socket></admin><mta>"), ground))
    assert line == 3
    assert "chmod go-w /s/var/run" in text


@pytest.mark.parametrize("block", ["deliver", "report"])
@pytest.mark.parametrize(
    ("audit", "spots", "words"),
    [
        ("%DIRLOG%/a.log", {}, []),
        ("%DIRLOG%/%Y%/a-%DT%.log", {"/s/var/logs": DIRECTORY}, []),
        ("/d", {"/d": DIRECTORY}, ["<audit> of", "is /d, a directory", "write a file in it, such as /d/%DT%.log"]),
        ("/d/a", {"/d": DIRECTORY, "/d/a": Spot(PathKind.LINK)}, ["is /d/a, a symbolic link", "write the file itself"]),
        (
            "/d/a",
            {"/d": attrs.evolve(DIRECTORY, may_make=False)},
            ["the directory of <audit> of", "/d, where user mailismus"],
        ),
        ("/d/%Y%/a", {"/d": attrs.evolve(DIRECTORY, may_make=False)}, ["is /d, where user mailismus may not write"]),
        ("/d/a", {"/d": Spot(PathKind.FILE)}, ["is /d, which is no directory"]),
        ("/d/e/a", {}, ["is /d/e, which does not exist", "install -d -m 700 -o mailismus /d"]),
    ],
)
def test_an_audit_log_that_can_not_be_made_is_an_error(
    block: str, audit: str, spots: dict[str, Spot], words: list[str]
) -> None:
    ground = FakeGround(WELL | spots, lowest_port=0)
    text = PLAIN.replace("<mta>", f"<mta>\n<{block}><audit>{audit}</audit></{block}>")
    found = places_of(text, ground)
    if not words:
        assert found == []
        return
    line, said = only(found)
    assert found[0].severity is AdviceSeverity.ERROR
    assert line == 1 + text.partition("<audit>")[0].count("\n")
    assert all(word in said for word in words), said


def test_a_root_that_is_not_there_is_warned_of() -> None:
    text = beside_domains("<mailserver><application><dirpaths>\n<root>/x</root></dirpaths></application></mailserver>")
    ground = FakeGround(lowest_port=0)
    found = [one for one in places_of(text, ground) if one.severity is AdviceSeverity.WARNING]
    assert only(found) == (2, found[0].text)
    assert "<root> is /x, which does not exist" in found[0].text


@pytest.mark.parametrize(
    ("spot", "words"),
    [
        (None, "<lmtp> names /run/lmtp, which does not exist: start the LMTP server, or write its socket"),
        (DIRECTORY, "which is no socket: write the socket of the LMTP server"),
        (Spot(PathKind.FILE), "which is no socket"),
        (Spot(PathKind.OTHER), ""),
    ],
)
def test_an_lmtp_socket_that_is_none_is_warned_of_and_userpath_is_not_looked_at(spot: Spot | None, words: str) -> None:
    ground = FakeGround(lowest_port=0)
    ground.spots["/s/var/ms"] = Spot(PathKind.FILE)
    if spot is not None:
        ground.spots["/run/lmtp"] = spot
    store = '<message_store>\n<lmtp address="unix:/run/lmtp"/></message_store>'
    found = places_of(PLAIN.replace("</mta>", f"</mta>\n{store}"), ground)
    assert [(one.severity, one.line) for one in found] == [(AdviceSeverity.WARNING, 5)] * bool(words)
    assert all(words in one.text for one in found)
    assert places_of(PLAIN.replace("</mta>", "</mta>\n" + store.replace("unix:/run/lmtp", "127.0.0.1:24")), ground) == []


@pytest.mark.parametrize(
    ("inner", "severity", "words"),
    [
        ("<userpath>/s/var/queue</userpath>", AdviceSeverity.ERROR, "and so is <rootpath> of <queue>: write two paths"),
        ("<userpath>/s/var/queue/ms</userpath>", AdviceSeverity.WARNING, "lies within <rootpath> of <queue>, /s/var/queue"),
    ],
)
def test_places_that_lie_within_one_another(inner: str, severity: AdviceSeverity, words: str) -> None:
    ground = FakeGround(lowest_port=0)
    text = PLAIN.replace("</mta>", f"</mta>\n<message_store>{inner}</message_store>")
    (found,) = places_of(text, ground)
    assert (found.severity, found.line) == (severity, 4)
    assert words in found.text


def test_a_low_port_is_warned_of_where_this_user_may_not_have_it() -> None:
    text = beside_domains(in_listeners('<listener port="25"/>\n<listener port="2525"/>\n<listener port="0"/>'))
    line, found = only(places_of(text, FakeGround()))
    assert line == 4
    assert "port 25 of listener SMTP needs root or CAP_NET_BIND_SERVICE" in found
    assert places_of(text, FakeGround(lowest_port=0)) == []


def test_an_interface_of_another_host_is_an_error() -> None:
    text = beside_domains(in_listeners('<listener interface="::1"/>\n<listener interface="203.0.113.9"/>'))
    (found,) = places_of(text, FakeGround(lowest_port=0))
    assert (found.severity, found.line) == (AdviceSeverity.ERROR, 5)
    assert "interface 203.0.113.9 of listener SMTP2" in found.text
    metrics = beside_domains('<mailserver><admin>\n<metrics interface="203.0.113.9"/></admin></mailserver>')
    (found,) = places_of(metrics, FakeGround(lowest_port=0))
    assert (found.severity, found.line) == (AdviceSeverity.ERROR, 2)


def test_a_web_page_at_an_interface_of_another_host_is_an_error() -> None:
    web = beside_domains('<mailserver><admin>\n<web interface="127.9.9.9"/></admin></mailserver>')
    (found,) = places_of(web, FakeGround(lowest_port=0))
    assert (found.severity, found.line) == (AdviceSeverity.ERROR, 2)
    assert "interface 127.9.9.9 of <web>" in found.text


@pytest.mark.parametrize(
    ("minfree", "room", "words"),
    [
        ("2%", Room(0.011, 0.5, 10**9), "1.1 % of the bytes"),
        ("2%", Room(0.5, 0.001, 10**9), "0.1 % of the inodes"),
        ("5G", Room(0.5, 0.5, 2 * 10**9), "has 2.0G free"),
        ("0", Room(0.0, 0.0, 0), None),
        ("2%", None, None),
    ],
)
def test_less_free_than_minfree_is_warned_of(minfree: str, room: Room | None, words: str | None) -> None:
    text = PLAIN.replace("<rootpath>", f"\n<minfree>{minfree}</minfree><rootpath>")
    found = places_of(text, FakeGround(lowest_port=0, free=room))
    assert [one.line for one in found] == ([4] if words else [])
    assert all(words in one.text for one in found if words)


def test_files_that_everybody_can_write_or_that_hold_passwords(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("joe\n")
    text = in_directory(f"<domains>a.example</domains>\n<users>{users}</users>\n<postmaster>joe</postmaster>")
    ground = FakeGround(lowest_port=0)
    ground.spots[str(users)] = Spot(PathKind.FILE, 0o644)
    assert places_of(text, ground) == []
    ground.secrets = frozenset({str(users)})
    line, found = only(places_of(text, ground))
    assert (line, "chmod o-r" in found) == (4, True)
    ground.spots[str(users)] = Spot(PathKind.FILE, 0o642)
    line, found = only(places_of(text, ground))
    assert (line, "chmod o-w" in found) == (4, True)
    ground.spots[str(users)] = Spot(PathKind.FILE, 0o600)
    ground.spots["/s/config/mailismus.xml"] = Spot(PathKind.FILE, 0o666)
    assert only(places_of(text, ground))[0] == 1


# This host


def test_this_host_is_looked_at_and_not_changed(tmp_path: Path) -> None:
    host = ThisHost()
    (tmp_path / "file").write_text("joe:secret\n# x:y\n")
    (tmp_path / "names").write_text("joe:\n  ann # x:y\n")
    (tmp_path / "link").symlink_to("file")
    assert host.look(str(tmp_path)).kind is PathKind.DIRECTORY
    assert host.look(str(tmp_path)).may_make
    assert host.look(str(tmp_path / "file")).kind is PathKind.FILE
    assert host.look(str(tmp_path / "link")).kind is PathKind.LINK
    assert host.look(str(tmp_path / "file" / "x")).kind is PathKind.MISSING
    assert host.look("/dev/null").kind is PathKind.OTHER
    assert host.holds_more_than_names(str(tmp_path / "file"))
    assert not host.holds_more_than_names(str(tmp_path / "names"))
    assert not host.holds_more_than_names(str(tmp_path / "missing"))
    assert host.is_own_address("127.0.0.1")
    assert not host.is_own_address("203.0.113.9")
    below, here = host.room(str(tmp_path / "a" / "b")), host.room(str(tmp_path))
    assert below is not None
    assert here is not None
    assert abs(below.share - here.share) < 0.01  # of the same file system, which others may use
    assert host.user_name(0) == "root"
    assert host.user_name(123456789) == "123456789"
    assert 0 <= host.lowest_port <= 65536
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "names"]


def test_the_shipped_sample_has_nothing_to_warn_of_but_the_name_of_this_host() -> None:
    found = load(str(Path(__file__).parents[2] / "config" / "mailismus.xml"))
    assert [one for one in advise(found.given, found.settings) if "<announcehost>" not in one.text] == []


@pytest.mark.parametrize(
    ("address", "tls", "words"),
    [
        ("mx.relay.example:465", "", '<tls latent="N"/> in it'),
        ("mx.relay.example:465", '<tls level="encrypt"/>', 'latent="N" in its <tls>'),
        ("mx.relay.example:465", '<tls latent="N"/>', ""),
        ("mx.relay.example:587", "", ""),
    ],
)
def test_a_relay_at_the_port_of_tls_from_the_start(address: str, tls: str, words: str) -> None:
    found = [one.text for one in advice_of(in_deliver(f'<relays><relay address="{address}">{tls}</relay></relays>'))]
    (text, *_) = [text for text in found if "TLS from the start" in text] or [""]
    assert words in text
    assert bool(words) == bool(text)


def test_users_must_reach_the_directory_of_sendmail() -> None:
    text = beside_domains(in_sendmail("<rootpath>/srv/deep/sendmail</rootpath>"))
    spots = {**WELL, "/srv": Spot(PathKind.DIRECTORY, mode=0o755), "/srv/deep": Spot(PathKind.DIRECTORY, mode=0o750)}
    found = [one for one in places_of(text, FakeGround(spots=spots, lowest_port=0)) if "sendmail" in one.text]
    assert any("run: chmod o+x /srv/deep" in one.text and one.line == 4 for one in found)
    assert not any("chmod o+x /srv," in one.text for one in found)
    spots["/srv/deep/sendmail"] = Spot(PathKind.DIRECTORY, mode=0o777)
    found = places_of(text, FakeGround(spots=spots, lowest_port=0))
    assert any(one.severity is AdviceSeverity.ERROR and "chmod go-w /srv/deep/sendmail" in one.text for one in found)
