"""What pages and docstrings mention is there: modules, classes, functions, settings, files."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.project.mentions import SOURCES, Tree, check_text, docstrings, read_tree

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "docs" / "evidence"
"""What runs printed, in the words of the source that they ran on."""
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("*.rst"), *(ROOT / "docs").rglob("*.md"))
    if EVIDENCE not in path.parents
)

KNOWN = frozenset(
    {
        # programs and packages of others
        *("ruff", "mypy", "dmesg", "mv", "swaks", "strace", "qmail", "mkfs.ext4", "mkfs.xfs", "cat"),
        # Twisted, OpenSSL, Postfix, Linux, RabbitMQ
        *("startTLS", "transport.startTLS", "transport.write", "log.callWithLogger", "connection.protocol", "SSL.Error"),
        *("IDelayedCall.getTime()", "defer_transports", "ip_nonlocal_bind", "advanced.config"),
        # how names are made up
        *("module.Class.function", "time.MusecPpidQn.host", "YYYYMMDDTHHMM", "vX.Y.Z", "NN", "E", "BIN", "_s"),
        *("self.f", "C.f", "a.b", "a.b.c"),
        # protocols
        *("ESMTP", "ESMTPS"),
        # bytes of files
        *("MQJM", "V"),
        # files of a queue without one of the usual endings, and those of the provider that tests lose mail with
        *("provider.new", "hosts.new", "history.new", "SPID.mail"),
        # how the names of metrics begin; names that the changelog says have changed
        *("mailismus_queue_", "mailismus_queue_clusters", "mailismus_queue_uncounted_clusters", "journal_sick"),
        *("mailismus_queue_unreadable_clusters", "mailismus_queue_young_messages", "mailismus_queue_oldest_young_seconds"),
        "mailismus_deliver_starved_next_hops",
        # what the metrics page adds to the names of histograms
        "mailismus_event_loop_lag_seconds_bucket",
    }
)
"""In backticks, and no name of ours."""


@pytest.fixture(scope="module")
def tree() -> Tree:
    return read_tree(ROOT, without=frozenset({Path(__file__).name}))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_mentions_is_there(page: Path, tree: Tree) -> None:
    assert list(check_text(page.read_text(), tree, KNOWN)) == []


@pytest.mark.parametrize("folder", SOURCES)
def test_what_docstrings_mention_is_there(folder: str, tree: Tree) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{text.lineno} mentions {mention}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for text in docstrings(ast.parse(path.read_text()))
        for mention in check_text(str(text.value), tree, KNOWN)
    ]
    assert found == []


@pytest.mark.parametrize(
    "there",
    [
        "`queue.outcome.retry` `retry.next_attempt_at` `mailismus.queue.outcome.retry.next_attempt_at()`",
        "`Reception.add_content` `QueueManager` `QueueTaking._pump` `Memtable.next_due`",
        "`retry_maxtime` `maxage` `mailismus_deliveries_total`",
        "`docs/durability.md` `deliver/task.py` `route.py` `tests/durability/model` `docs/formats/journal`",
        "`python -m benchmarks.main_path` `tests/deliver/test_chaos.py::test_x` ``README.rst``",
        "`twisted.internet.reactor` `os.path.join` `mx.example.net` `SPID.msg` `451 4.4.1` `a_call(of, something)`",
        "```\n`not.looked_at` in a block\n```",
    ],
)
def test_what_is_there_is_found(there: str, tree: Tree) -> None:
    assert list(check_text(there, tree, frozenset({"a_call(of, something)"}))) == []


@pytest.mark.parametrize(
    "gone",
    [
        "queue.retries",
        "retry.next_attempt_of",
        "queue.outcome.retry.next_attempt_at.first",
        "Reception.add_nothing",
        "Memtable.next_one",
        "QueueMonger",
        "retry_mintime",
        "writebehind_all",
        "mailismus_deliveries_totals",
        "docs/endurance.md",
        "tests/durability/modell",
        "deliver/tasks.py",
        "calendar.md",
        "python -m benchmarks.side_path",
        "tests/deliver/test_order.py::test_x",
        "twisted.internet.reaktor",
    ],
)
def test_what_is_gone_is_told(gone: str, tree: Tree) -> None:
    text = f"It is in `{gone}`, see ``{gone}``."
    assert list(check_text(text, tree, frozenset())) == [gone, gone]


def test_names_of_others_are_told_exactly(tree: Tree) -> None:
    assert list(check_text("`startTLS` `startTLS.gone`", tree, KNOWN)) == ["startTLS.gone"]
