"""Pages: what is on them, and how far a search goes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from urllib.parse import quote

import attrs
import pytest

from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId, format_spool_id
from mailismus.observe.overview import Failure, Holding
from mailismus.queue.interface import Gap
from mailismus.queue.waiting import Waiting
from mailismus.web.pages.templates import NAMES, SCRIPT, STYLE
from mailismus.web.search import MAX_SEARCHES, MOST_S, MOST_S_AGAIN, REMEMBERED
from mailismus.web.site import MOST_ENTRIES, MOST_SKIPPED
from tests.admin.samples import Told, bounced, deferred, incoming, message
from tests.admin.test_attempts import tried
from tests.top.samples import NOW, busy
from tests.web.browsers import GONE
from tests.web.pages import FakeQueue, Pieces, Place, found_in, parse, text_of, texts_of

ROWS = "//table[contains(@class,'entries')]/tbody/tr"


def test_the_front_page_tells_what_top_tells() -> None:
    place = Place([busy(10), busy(14)])
    place.get("/")
    place.monotonic_s = 113.9
    page = parse(place.get("/"))
    text = " ".join(text_of(page).split())
    for told in ("mx.example.net", "0.1.0", "4310", "processor 12%", "40%", "of 120 GB free"):
        assert told in text
    assert texts_of(page, "//table[contains(@class,'hops')]/tbody/tr/th") == [
        "slow.test",
        "well.test",
        "dead.test",
        "greylisting.test",
        "local users",
    ]
    assert found_in(page, "//table[contains(@class,'hops')]//a/@href")[5:7] == ["queue?q=slow.test", "queue?q=well.test"]
    assert "mx.dead.test is left alone" in text
    assert "550 5.1.1 No such user" in text
    assert "no-such-user@full.test and 2 more" in text


ORDERS = {"waits": "dead.test", "sent": "well.test", "name": "dead.test", "held": "slow.test", "x": "slow.test"}


@pytest.mark.parametrize(("order", "first"), ORDERS.items())
def test_next_hops_are_sorted(order: str, first: str) -> None:
    page = parse(Place([busy(10)]).get(f"/?order={order}"))
    assert texts_of(page, "//table[contains(@class,'hops')]/tbody/tr/th")[0] == first


def test_an_overview_is_made_once_a_second_however_many_ask() -> None:
    place = Place([busy(1), busy(2), busy(3)])
    place.monotonic_s = 101.9
    for _ in range(5):
        place.get("/")
    assert place.pictures.take().monotonic == 102.0


def test_a_failure_without_a_host_names_none_and_one_of_another_day_has_its_date() -> None:
    old = Failure(NOW - 3 * 86400, "deferred", "dead.test", "ann@dead.test", 1, "", "451 4.4.1 no host answers")
    page = parse(Place([attrs.evolve(busy(2), failures=(old,))]).get("/"))
    (row,) = texts_of(page, "//table[contains(@class,'failures')]/tbody/tr")
    assert " ".join(row.split()).endswith("ann@dead.test 451 4.4.1 no host answers")
    assert "Nov 15 " in row


def test_what_holds_mail_back_names_its_subject_once() -> None:
    holds = (
        Holding("dead", "mx.dead.test", "waits for mx.dead.test: no session since 14:02"),
        Holding("queue", "the queue", "no room"),
    )
    page = parse(Place([attrs.evolve(busy(2), holds=holds)]).get("/"))
    told = ["host down waits for mx.dead.test: no session since 14:02", "queue unreadable the queue: no room"]
    assert texts_of(page, "//ul[@class='holds']/li") == told


def test_a_page_tells_the_zone_of_its_times() -> None:
    for zone, told in ((UTC, "Times are UTC, those"), (timezone(timedelta(hours=-3, minutes=-30)), "(UTC-03:30)")):
        place = Place(zone=zone)
        for target in ("/", "/day", "/queue", "/queue?q=x%3Dy", "/message?id=1"):
            assert told in place.get(target).text


def test_the_title_of_a_search_has_its_words() -> None:
    assert "<title>area=deferred - Queue - Mailismus</title>" in Place().get("/queue?q=area%3Ddeferred").text


def test_an_empty_server_says_so() -> None:
    place = Place()
    page = " ".join(text_of(parse(place.get("/"))).split())
    assert "No next hop has had mail" in page
    assert "No attempt has failed" in page
    assert "nothing recorded yet" in page
    assert "No entry matches." in place.get("/queue?q=area%3Dbounces").text
    assert "0 minutes recorded" in place.get("/day").text


def test_there_are_no_other_pages_and_files_have_their_types() -> None:
    place = Place()
    for path in ("/x", "/style.css/", "//", "/../etc/passwd", "/%2e%2e/", "/queue/", "/pages"):
        assert place.get(path).status == 404
    assert (place.get("/style.css").content, place.get("/refresh.js").content) == (STYLE, SCRIPT)
    assert place.get("/style.css").fields["Content-Type"] == "text/css; charset=utf-8"
    assert place.get("/icon.svg").fields["Content-Type"] == "image/svg+xml"


def test_the_templates_have_nothing_inline_and_mark_nothing_as_safe() -> None:
    place = Place([busy(3)], FakeQueue([message(1, deferred())]))
    for target in ("/", "/day", "/queue", "/queue?q=area%3Ddeferred", "/message?id=0000000100000001", "/queue?q=%22"):
        page = parse(place.get(target))
        assert found_in(page, "//@style | //style | //script[not(@src)]") == []
        assert [name for element in page.iter() for name in element.attrib if str(name).startswith("on")] == []
        links = [str(link) for link in found_in(page, "//@src | //@href")]
        assert [link for link in links if ":" in link.partition("?")[0] or link.startswith("/")] == []
    from importlib.resources import files

    for name in NAMES:
        text = (files("mailismus.web.pages") / "files" / f"{name}.html").read_text()
        assert "safe" not in text
        assert "autoescape" not in text


def test_a_search_shows_entries_with_their_reasons() -> None:
    noted = {QueueId(message(1).spool_id, 1): Waiting("window", b"waits for a window")}
    queue = FakeQueue([message(1, deferred()), message(2, incoming(), bounced(2))], Told(noted))
    page = parse(Place(queue=queue).get("/queue?q=domain%3Dd.example"))
    assert texts_of(page, f"{ROWS}/th") == ["0000000100000001-1", "0000000100000002-1", "0000000100000002-2"]
    assert texts_of(page, f"{ROWS}/td[@class='area']") == ["deferred", "incoming", "bounces"]
    assert texts_of(page, f"{ROWS}/td[6]")[0] == "waits for a window"
    assert found_in(page, f"{ROWS}/th/a/@href")[0] == "message?id=0000000100000001-1"
    page = parse(Place(queue=queue).get("/queue?q=area%3Dbounces+larger%3D1K"))
    assert texts_of(page, f"{ROWS}/th") == ["0000000100000002-2"]


def test_a_domain_an_address_and_an_id_are_asked_about_as_by_why() -> None:
    queue = FakeQueue([message(1, deferred()), message(2, deferred(1, b"x@y.example"))], Told({}, [b"a host is dead"]))
    page = parse(Place(queue=queue).get("/queue?q=y.example"))
    assert texts_of(page, f"{ROWS}/th") == ["0000000100000002-1"]
    assert texts_of(page, "//ul[@class='holds']/li") == ["a host is dead"]
    assert texts_of(parse(Place(queue=queue).get("/queue?q=c%40d.example")), f"{ROWS}/th") == ["0000000100000001-1"]
    assert texts_of(parse(Place(queue=queue).get("/queue?q=0000000100000002")), f"{ROWS}/th") == ["0000000100000002-1"]
    nothing = Place(queue=queue).get("/queue?q=other.example").text
    assert "No entry of it is in the queue." in nothing
    assert "a host is dead" in nothing


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("area%3Dnowhere", "write area=incoming"),
        ("domain%3D%22x", "a quote or a backslash has no end"),
        ("+".join(["area%3Ddeferred"] * 21), "more than 20 words"),
        ("a" * 1001, "longer than 1000 characters"),
        ("older%3Dlong", "older=long"),
        ("two+words", "is no filter"),
    ],
)
def test_what_is_no_query_is_refused_with_a_hint(query: str, words: str) -> None:
    response = Place().get(f"/queue?q={query}")
    assert response.status == 400
    assert words in text_of(parse(response))


def test_words_may_hold_blanks_in_quotes() -> None:
    queue = FakeQueue([message(1, deferred())])
    assert len(texts_of(parse(Place(queue=queue).get('/queue?q=reply%3D"come+back"')), f"{ROWS}/th")) == 1


def test_a_search_ends_with_its_entries_and_says_so() -> None:
    queue = FakeQueue([message(number, deferred()) for number in range(1, 301)], page_entries=30)
    page = parse(Place(queue=queue).get("/queue?q=area%3Ddeferred"))
    assert len(texts_of(page, f"{ROWS}/th")) == MOST_ENTRIES
    assert "These are the first 100: there may be more." in text_of(page)


def test_a_search_has_further_pages_of_what_comes_behind() -> None:
    queue = FakeQueue([message(number, deferred(1), deferred(2), deferred(3)) for number in range(1, 101)], page_entries=30)
    place = Place(queue=queue)
    found: list[str] = []
    path = "/queue?q=area%3Ddeferred"
    for expected in (100, 100, 100):
        page = parse(place.get(path))
        rows = texts_of(page, f"{ROWS}/th")
        assert len(rows) == expected
        found += rows
        links = found_in(page, "//a[text()='Next page']/@href")
        path = f"/{links[0]}" if links else ""
    assert len(set(found)) == 300
    assert not path
    assert found_in(page, "//a[text()='First page']/@href") == ["queue?q=area%3Ddeferred"]
    assert "These are 101 to 200, as the queue is now" in text_of(parse(place.get("/queue?q=area%3Ddeferred&skip=100")))


def test_the_last_page_of_a_long_search_says_how_to_see_more() -> None:
    queue = FakeQueue([message(number, deferred()) for number in range(1, MOST_SKIPPED + 2 * MOST_ENTRIES)])
    place = Place(queue=queue)
    for skip, has_more in ((MOST_SKIPPED - MOST_ENTRIES, True), (MOST_SKIPPED, False)):
        page = parse(place.get(f"/queue?q=area%3Ddeferred&skip={skip}", turns=200))
        assert len(texts_of(page, f"{ROWS}/th")) == MOST_ENTRIES
        assert ("Next page" in text_of(page)) == has_more
        assert ("there may be more. Write more words" in text_of(page)) != has_more


@pytest.mark.parametrize("skip", ["7", "-100", "100000", "9" * 5000, "1e2", "١٠٠", "5100"])
def test_what_is_no_number_of_a_page_is_the_first_one(skip: str) -> None:
    queue = FakeQueue([message(number, deferred()) for number in range(1, 301)], page_entries=30)
    page = parse(Place(queue=queue).get(f"/queue?q=area%3Ddeferred&skip={quote(skip)}"))
    assert "These are the first 100: there may be more." in text_of(page)


def test_a_search_ends_with_its_time_and_says_so() -> None:
    pages: list[int] = []
    place = Place(queue=FakeQueue([message(number, deferred()) for number in range(1, 1001)], page_entries=10))

    def on_page() -> None:
        pages.append(1)
        place.monotonic_s += MOST_S / 4

    place.queue.on_page = on_page
    text = place.get("/queue?q=area%3Dbounces").text
    assert len(pages) == 4
    assert "The search ended after 5 s, with 0 entries looked at" in text  # the area alone decided
    assert "No entry of what was looked at matches." in text


def test_a_search_of_a_domain_that_ends_with_its_time_does_not_say_that_nothing_is_there() -> None:
    queue = FakeQueue(
        [message(number, deferred()) for number in range(1, 1001)], Told({}, [b"a host is dead"]), page_entries=10
    )
    place = Place(queue=queue)

    def on_page() -> None:
        place.monotonic_s += MOST_S / 4

    queue.on_page = on_page
    text = place.get("/queue?q=other.example").text
    assert "a host is dead" in text
    assert "No entry of what was looked at matches." in text
    assert "is in the queue" not in text


def test_a_search_ends_when_nobody_waits() -> None:
    pages: list[int] = []
    place = Place(queue=FakeQueue([message(number, deferred()) for number in range(1, 1001)], page_entries=10))
    place.queue.on_page = lambda: pages.append(1)
    channel, _ = place.house.connect()
    channel.dataReceived(b"GET /queue?q=reply=none HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert len(pages) == 1
    channel.connectionLost(GONE)
    for _ in range(20):
        place.clock.advance(0)
    assert len(pages) == 1


def test_a_message_of_a_long_queue_is_shown_as_it_was_found() -> None:
    messages = [message(number, deferred()) for number in range(1, 1001)]
    place = Place(queue=FakeQueue(messages, page_entries=10, content=b"Subject: x\r\n\r\n"))
    assert len(texts_of(parse(place.get("/queue?q=area%3Ddeferred")), f"{ROWS}/th")) == MOST_ENTRIES

    def on_page() -> None:
        place.monotonic_s += MOST_S_AGAIN

    place.queue.on_page = on_page
    page = place.get("/message?id=0000000100000032-1")
    assert page.status == 200
    assert "As it was found on " in page.text
    assert "come back later" in page.text
    assert "As it was found on " not in place.get("/message?id=0000000100000003").text
    on_page()
    assert place.get("/message?id=00000001000003E8").status == 503
    for number in range(REMEMBERED):
        place.searches._remember(message(5000 + number, deferred()))
    assert "As it was found on " not in place.get("/message?id=0000000100000032").text
    place.get("/queue?q=0000000100000032")
    assert place.get("/message?id=0000000100000032-2").status == 503


def test_few_searches_are_made_at_a_time() -> None:
    place = Place(queue=FakeQueue([message(number, deferred()) for number in range(1, 1001)], page_entries=10))
    request = b"GET /queue?q=reply=none HTTP/1.1\r\nHost: localhost\r\n\r\n"
    running = [place.house.send(request) for _ in range(MAX_SEARCHES)]
    assert place.get("/queue?q=reply=none", turns=0).status == 503
    for _ in range(200):
        place.clock.advance(0)
    assert all(one.said.startswith(b"HTTP/1.1 200") for one in running)
    assert place.get("/queue?q=reply=none", turns=200).status == 200


def test_what_cannot_be_read_is_said() -> None:
    gap = Gap("cluster", "Input/output error", 1, "/q/1.mqc")
    queue = FakeQueue([message(1, deferred())], gaps=(gap,))
    assert "can&#39;t be read" in Place(queue=queue).get("/queue?q=area%3Ddeferred").text
    response = Place(queue=attrs.evolve(queue, messages=())).get("/message?id=0000000100000009")
    assert response.status == 503


def message_text(queue: FakeQueue, name: str = "0000000100000001") -> str:
    return " ".join(text_of(parse(Place(queue=queue).get(f"/message?id={name}"))).split())


RECEIVED = b"Received: from x ([192.0.2.7])\r\n\tby mx with ESMTPS id 0000000100000001;\r\n\tnow\r\n"


def test_attempts_that_are_not_kept_have_a_name_on_the_page() -> None:
    entry = attrs.evolve(deferred(), words=tried(9).entries[0].words)
    page = parse(Place(queue=FakeQueue([message(1, entry)])).get("/message?id=0000000100000001"))
    names, told = texts_of(page, "//section[@class='entry']//dt"), texts_of(page, "//section[@class='entry']//dd")
    assert told[names.index("2 to 4")] == "not kept"
    assert names[-1] == "attempt 9"


def test_a_message_is_shown_as_queue_show_does() -> None:
    queue = FakeQueue([message(1, deferred(), bounced(3), count=5)], content=RECEIVED + b"Subject: x\r\n\r\nbody")
    text = message_text(queue)
    for told in ("ESMTPS", "5 in the envelope", "451 4.3.0 come back later", "550 5.1.1 no such user", "Subject: x"):
        assert told in text
    assert "body" not in text
    assert "0000000100000001-3" in text
    assert "Recipients still in the queue 0000000100000001-1" in text
    assert "The recipient asked for 0000000100000001-3" in message_text(queue, "0000000100000001-3")
    assert "come back later" not in message_text(queue, "0000000100000001-3")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Pieces([b"A: 1\r\n", b"B: 2\r\n\r", b"\nbody" + b"x" * 1000]),
        lambda: Pieces([b"A: 1\r\nB: 2\r\n\r\n", b"never asked for"]),
    ],
)
def test_a_header_in_pieces_is_read_to_its_end(make: Callable[[], Pieces]) -> None:
    queue = FakeQueue([message(1, deferred())], content=make().pieces)
    text = message_text(queue)
    assert "B: 2" in text
    assert "body" not in text


def test_a_long_header_is_cut() -> None:
    queue = FakeQueue([message(1, deferred())], content=[b"A: 1\r\n" * 10_000] * 10)
    assert "The header goes on" in message_text(queue)
    queue = FakeQueue([message(1, deferred())], content=b"A: 1\r\n" * 20_000)
    assert "The header goes on" in message_text(queue)


def test_content_that_cannot_be_read_hides_nothing_else() -> None:
    text = message_text(FakeQueue([message(1, deferred())], content=Unavailable("the disk is sick")))
    assert "It can't be read: the disk is sick" in text
    assert "come back later" in text


def test_a_message_that_is_gone_and_an_id_that_is_none() -> None:
    gone = Place().get("/message?id=0000000100000001")
    assert gone.status == 404
    assert "It is not in the queue" in gone.text
    assert Place().get("/message?id=1").status == 400
    assert Place().get("/message").status == 400
    assert format_spool_id(message(1).spool_id) == "0000000100000001"
