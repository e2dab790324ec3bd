"""Pages in a real browser: nothing of others runs or is loaded, nothing is wider than the window, all can be read."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from mailismus.mail.ids import format_spool_id
from tests.web.chromium import Chromium, find_chromium
from tests.web.served import served
from tests.web.test_hostile import HOSTILE, queue_of

PROGRAM = find_chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs Chromium")

MESSAGES = [f"/message?id={format_spool_id(one.spool_id)}" for one in queue_of(HOSTILE).messages]
HOSTILE_PAGES = ("/?all=1", "/day", "/queue?q=area%3Ddeferred", "/queue?q=x.example", MESSAGES[38])
BUSY_PAGES = ("/", "/day", "/queue", "/queue?q=area%3Ddeferred", "/queue?q=x.example", "/message?id=0000000100000001")
WIDTHS = (280, 320, 390, 600, 721, 768, 1056, 1057, 1280, 2560)
FILES = ("/style.css", "/refresh.js", "/icon.svg")

_FAINT = """(() => {
  const numbers = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (colour) => {
    const [r, g, b] = colour.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = numbers(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const ratio = (one, other) => {
    const [less, more] = [light(one), light(other)].sort((a, b) => a - b);
    return (more + 0.05) / (less + 0.05);
  };
  const found = {};
  const judge = (name, colour, element, least) => {
    const is = ratio(numbers(colour).slice(0, 3), ground(element));
    if (is < least) found[name] = is.toFixed(2);
  };
  for (const one of document.querySelectorAll("body *")) {
    if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    const style = getComputedStyle(one);
    judge(`${one.tagName} ${one.getAttribute("class")}`, one.closest("svg") ? style.fill : style.color, one, 4.5);
  }
  for (const one of document.querySelectorAll("path.line")) judge("line", getComputedStyle(one).stroke, one, 3);
  const search = document.getElementById("q");
  judge("placeholder", getComputedStyle(search, "::placeholder").color, search, 4.5);
  judge("rim", getComputedStyle(search).borderTopColor, document.querySelector("header"), 3);
  return found;
})()"""
"""What has less contrast than WCAG 2 asks for (AA: 4.5 for texts, 3 for lines and rims)."""
_BROKEN = """(() => {
  const broken = [];
  for (const cell of document.querySelectorAll(".failures td:nth-child(-n+2), .entries .area, .entries .id, .number")) {
    const range = document.createRange();
    range.selectNodeContents(cell);
    if (new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size > 1) broken.push(cell.textContent);
  }
  return broken;
})()"""
"""Short values that are broken into two lines."""

_SEEN = """(({left, right, width}, style) =>
  width > 0 && right > 0 && left < innerWidth && style.outlineStyle === "solid"
)(document.activeElement.getBoundingClientRect(), getComputedStyle(document.activeElement))"""
"""Whether the focus can be seen."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    assert PROGRAM is not None
    with Chromium(PROGRAM) as browser:
        yield browser


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    with served("hostile") as address:
        yield address


@pytest.fixture(scope="module")
def busy() -> Iterator[str]:
    with served("busy") as address:
        yield address


def test_what_runs_and_what_is_loaded_is_noticed(browser: Chromium) -> None:
    browser.look(1280, 900)
    browser.open("data:text/html,<script>console.log(1)</script><img src=http://127.0.0.1:9/x onerror=console.log(2)>")
    browser.let_pass(0.2)
    assert len([one for one in browser.alarms if one.startswith("Runtime.consoleAPICalled")]) == 2
    assert "http://127.0.0.1:9/x" in browser.requests
    assert browser.value(_BROKEN.replace(".number", "p").replace("selectNodeContents(cell)", "selectNode(cell)")) == []


def asked(texts: tuple[str, ...]) -> list[str]:
    return [f"/queue?q={quote(text.encode('utf-8', 'surrogatepass'))[:4000]}" for text in texts]


def test_no_word_of_others_runs_or_loads_anything(browser: Chromium, hostile: str) -> None:
    browser.look(1280, 900)
    for target in (*HOSTILE_PAGES, *MESSAGES, *asked(HOSTILE)):
        browser.open(hostile + target)
        browser.let_pass(0.05)
        alarms = [one for one in browser.alarms if "the server responded with a status of 400" not in one]
        assert alarms == [], target
        assert set(browser.requests) <= {hostile + path for path in (target, *FILES)}, target
        assert browser.value("document.querySelectorAll('form, iframe, img, object, base, style, template').length") == 1
        assert browser.value("[...document.scripts].every((one) => one.src.endsWith('/refresh.js'))")
        assert browser.value("document.title").endswith(" - Mailismus")


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_its_window(browser: Chromium, hostile: str, busy: str, width: int) -> None:
    browser.look(width, 900)
    for address in (*(hostile + target for target in HOSTILE_PAGES), *(busy + target for target in BUSY_PAGES)):
        browser.open(address)
        assert browser.value("document.documentElement.scrollWidth") <= width, address
        assert address.startswith(hostile) or browser.value(_BROKEN) == [], address


def test_links_to_further_pages_stand_apart(browser: Chromium, busy: str) -> None:
    browser.look(390, 900)
    browser.open(f"{busy}/queue?q=area%3Ddeferred&skip=100")
    places = "[...document.querySelectorAll('.further a')].map((one) => one.getBoundingClientRect())"
    assert browser.value(f"(([first, next]) => next.left - first.right)({places})") >= 16


@pytest.mark.parametrize("is_dark", [False, True])
def test_every_text_can_be_read(browser: Chromium, busy: str, is_dark: bool) -> None:
    browser.look(1280, 900, is_dark=is_dark)
    for target in (*BUSY_PAGES, "/queue?q=x%3Dy", "/message?id=00000001000000FF"):
        browser.open(busy + target)
        assert browser.value(_FAINT) == {}, target
        ground = browser.value("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(15, 19, 24)" if is_dark else "rgb(246, 247, 249)")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_focus_is_seen_and_stays_while_figures_are_exchanged(browser: Chromium, busy: str, width: int) -> None:
    browser.look(width, 900)
    browser.open(f"{busy}/")
    for _ in range(12):
        browser.press("Tab")
        seen = browser.value(_SEEN)
        assert seen, browser.value("document.activeElement.outerHTML")
    before = browser.value("[document.activeElement.getAttribute('href'), document.querySelector('.head p').textContent]")
    browser.let_pass(6)
    after = browser.value("[document.activeElement.getAttribute('href'), document.querySelector('.head p').textContent]")
    assert after[0] == before[0] is not None
    assert after[1] != before[1]
    assert browser.alarms == []
