"""Peers and clients who mean harm: their words are text on the page, and nothing else."""

from __future__ import annotations

from urllib.parse import quote

import attrs
import pytest

from mailismus.errors import Corrupt
from mailismus.mail.ids import QueueId, format_spool_id
from mailismus.mail.reply import Reply
from mailismus.observe.overview import Failure, Holding, Overview
from mailismus.observe.text import shown
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.waiting import Waiting
from mailismus.web.pages.templates import harmless
from tests.admin.samples import Told, message
from tests.top.samples import NOW, hop
from tests.web.pages import FakeQueue, Place, found_in, parse, skeleton, texts_of

HOSTILE = (
    "<script>alert(1)</script>",
    "</bdi></td></tr></table><script src=//evil.example/x.js></script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "<img src='https://evil.example/track.gif'>",
    "<iframe src=javascript:alert(1)>",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "<a href=javascript:alert(1)>click</a>",
    "<form action=//evil.example><input name=q></form>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>*{display:none}</style>",
    "<!-- comment",
    "--><script>alert(1)</script>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "</title><script>alert(1)</script>",
    "</textarea></noscript></style><b>x",
    "<template><script>alert(1)</script></template>",
    "<math><mtext><script>alert(1)</script></mtext></math>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)",
    "&amp;amp;&quot;&#39;",
    "{{ 7 * 7 }} {% raw %} {# x #}",
    "{{ self.__init__.__globals__ }}",
    "${7*7} #{7*7} <%= 7*7 %>",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "\x00<script>alert(1)\x00</script>",
    "\x1b[2J\x1b]0;owned\x07",
    "line\r\nX-Injected: 1\r\n\r\n<b>x",
    "\u202e\u2066<script>\u2069 right to left",
    "\ufeff\u200b\u2028\u2029<b>",
    "\ud800\udcff alone",
    "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e",
    "e" + "\u0301" * 300,
    "<" * 500,
    "a" * 3000,
    '`onmouseover=alert(1) x="',
)
BENIGN = tuple(f"plain{number}" for number in range(len(HOSTILE)))
assert len(HOSTILE) == 40


def overview_of(texts: tuple[str, ...]) -> Overview:
    hops = tuple(hop(text, 1, hold=text, reason=text) for text in texts)
    failures = tuple(Failure(NOW, text, text, text, 2, text, text) for text in texts)
    holds = tuple(Holding(text, text, text) for text in texts)
    figures = {
        "mailismus_queue_refusing": dict.fromkeys(texts, 1),
        "mailismus_disk_free_bytes": dict.fromkeys(texts, 1),
        "mailismus_disk_size_bytes": dict.fromkeys(texts, 2),
    }
    return Overview(NOW, 100.0, texts[0], texts[1], 0.0, figures, hops, holds, failures, texts)


def raw(text: str) -> bytes:
    """The bytes that a peer would have sent."""
    return text.encode("utf-8", "surrogatepass")


def on_page(text: str) -> str:
    """What a page shows of a text that a peer has sent."""
    return str(harmless(shown(raw(text))))


def queue_of(texts: tuple[str, ...]) -> FakeQueue:
    messages, waiting = [], {}
    for number, text in enumerate(texts, 1):
        reply = Reply(451, b"4.7.1", raw(text).replace(b"\r", b" ").replace(b"\n", b" "))
        entry = Entry(1, raw(text), Area.DEFERRED, NOW + 900, 1, reply, raw(text))
        one = message(number, entry, sender=raw(text))
        messages.append(attrs.evolve(one, client=raw(text)))
        if number % 2:
            waiting[QueueId(one.spool_id, 1)] = Waiting(text, raw(text))
    header = b"".join(b"X: " + raw(text) + b"\r\n" for text in texts) + b"\r\n"
    return FakeQueue(messages, Told(waiting, [raw(text) for text in texts]), header)


def expected(texts: tuple[str, ...]) -> list[str]:
    return [str(harmless(text)) for text in texts]


def test_what_is_harmless_shows_what_was_sent() -> None:
    assert harmless("<b>") == "<b>"
    assert harmless("\x00\ud800\u202e") == "\\x00\\ud800\\u202e"
    assert harmless(5) == 5
    assert harmless("e\u0301\u0301\u0301\u0301x\u0301") == "e\u0301\u0301\\u0301\\u0301x\u0301"


def test_the_front_page_has_the_elements_of_a_benign_one_and_the_words_as_text() -> None:
    page = parse(Place([overview_of(HOSTILE)]).get("/?all=1"))
    benign = parse(Place([overview_of(BENIGN)]).get("/?all=1"))
    assert skeleton(page) == skeleton(benign)
    names = sorted(HOSTILE)
    assert sorted(texts_of(page, "//table[contains(@class,'hops')]/tbody/tr/th")) == sorted(expected(HOSTILE))
    assert sorted(texts_of(page, "//table[contains(@class,'hops')]/tbody/tr/td[@class='why warn']")) == sorted(
        f"{text} {text}" for text in expected(tuple(names))
    )
    failures = texts_of(page, "//table[contains(@class,'failures')]/tbody/tr/td[3]/bdi")
    assert failures == expected(HOSTILE)
    assert texts_of(page, "//ul[@class='holds']/li") == [f"{text} {text}" for text in expected(HOSTILE)]
    assert texts_of(page, "//h1") == [expected(HOSTILE)[1]]


@pytest.mark.parametrize("target", ["/queue?q=area%3Ddeferred", "/queue?q=plain.example"])
def test_a_listing_has_the_elements_of_a_benign_one_and_the_words_as_text(target: str) -> None:
    hostile, plain = queue_of(HOSTILE), queue_of(BENIGN)
    if "plain" in target:  # entries of a domain, with all that is known of it
        hostile.messages = [_at_domain(one) for one in hostile.messages]
        plain.messages = [_at_domain(one) for one in plain.messages]
    page, benign = parse(Place(queue=hostile).get(target)), parse(Place(queue=plain).get(target))
    assert skeleton(page) == skeleton(benign)
    rows = "//table[contains(@class,'entries')]/tbody/tr"
    assert texts_of(page, f"{rows}/td[4]/bdi[1]") == [on_page(text) for text in HOSTILE]
    recipients = [str(harmless(shown(one.entries[0].recipient))) for one in hostile.messages]
    assert texts_of(page, f"{rows}/td[4]/bdi[2]") == recipients
    reasons = texts_of(page, f"{rows}/td[6]/bdi")
    assert len(reasons) == len(HOSTILE)
    for number, (text, reason) in enumerate(zip(HOSTILE, reasons, strict=True), 1):
        assert reason == on_page(text) if number % 2 else reason.startswith(on_page(text) + ": 451 4.7.1 ")


def _at_domain(one: Message) -> Message:
    entry = one.entries[0]
    return attrs.evolve(one, entries=[attrs.evolve(entry, recipient=entry.recipient.replace(b"@", b"") + b"@plain.example")])


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_message_has_the_elements_of_a_benign_one_and_the_words_as_text(number: int) -> None:
    hostile, plain = queue_of(HOSTILE), queue_of(BENIGN)
    name = format_spool_id(hostile.messages[number].spool_id)
    page = parse(Place(queue=hostile).get(f"/message?id={name}"))
    if "\n" not in HOSTILE[number]:  # a line of its own, in the header of all
        benign = parse(Place(queue=plain).get(f"/message?id={name}"))
        assert [one for one in skeleton(page) if one[0] != "li"] == [one for one in skeleton(benign) if one[0] != "li"]
    text = on_page(HOSTILE[number])
    assert f"<{text}>" in texts_of(page, "//dl[@class='fields']/dd")
    lines = "".join(texts_of(page, "//ol[@class='lines']/li"))
    for one in HOSTILE[:30]:
        assert str(harmless(shown(raw(one).replace(b"\r\n", b"")))) in lines
    assert found_in(page, "//script/@src") == []


@pytest.mark.parametrize("text", HOSTILE)
def test_what_was_asked_for_comes_back_as_text(text: str) -> None:
    place = Place(queue=queue_of(BENIGN))
    asked = quote(text.encode("utf-8", "surrogatepass"))[:4000]
    benign = {"/queue?q=": "/queue?q=%22x", "/message?id=": "/message?id=x", "/?order=": "/?order=x"}
    for target, other in benign.items():
        response = place.get(target + asked)
        assert response.status in (200, 400)
        page = parse(response)
        if response.status == 400:
            assert skeleton(page) == skeleton(parse(place.get(other)))
        assert set(texts_of(page, "//script")) <= {""}
        assert len(found_in(page, "//form | //iframe | //img | //base | //style | //object")) == 1  # the search
    assert place.get("/" + asked).status in (400, 404)


def test_trouble_that_names_a_path_is_text() -> None:
    queue = queue_of(BENIGN)
    queue.content = Corrupt("/q/<script>", 0, "<b>")
    page = parse(Place(queue=queue).get(f"/message?id={format_spool_id(queue.messages[0].spool_id)}"))
    assert "<script>" in "".join(texts_of(page, "//p[contains(@class,'bad')]"))
    assert found_in(page, "//main//script") == []
