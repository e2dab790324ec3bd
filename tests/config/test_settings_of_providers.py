"""A setting belongs to queue providers: written under another it is refused with its line, and not shown."""

from __future__ import annotations

import attrs
import pytest

from mailismus.config.generate.manual import write_markdown
from mailismus.config.generate.sample import write_sample
from mailismus.config.generate.schema import write_schema
from mailismus.config.read.document import parse
from mailismus.config.read.load import LoadedConfig, load_tree
from mailismus.config.table.kinds import count
from mailismus.config.table.queue import JOURNAL, MAXCLUSTERSIZE, QUEUE
from mailismus.config.table.words import Block, Setting, belongs_to, with_provider
from mailismus.errors import ConfigError, StartError

MADE_UP = "novelty"
QUEUE_OF_IT = """<mailserver>
<mta>
<queue provider="novelty">
<rootpath>/q</rootpath>
{}
</queue>
</mta>
</mailserver>"""


def loaded(inner: str, providers: tuple[str, ...] = (MADE_UP,)) -> LoadedConfig:
    return load_tree(parse(QUEUE_OF_IT.format(inner).encode(), "f.xml"), "f.xml", "mx.example.net", None, None, providers)


@pytest.mark.parametrize(
    ("inner", "line", "what"),
    [
        ("<maxclustersize>1M</maxclustersize>", 5, "<maxclustersize>"),
        ("\n<journal><maxage>1s</maxage></journal>", 6, "<journal>"),
        ("<journal/>", 5, "<journal>"),
        ("<spool>\n<hardlinks>Y</hardlinks></spool>", 5, "<spool>"),
    ],
)
def test_a_setting_of_another_provider_is_refused_with_its_line(inner: str, line: int, what: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(inner)
    error = refused.value
    assert (error.file, error.line) == ("f.xml", line)
    owners = "clustered" if what == "<maxclustersize>" else "clustered and log"
    assert error.text == f'{what} belongs to provider {owners}, and <queue provider> is "novelty": remove it'


def test_a_setting_of_every_provider_is_taken() -> None:
    settings = loaded("<retry_maxtime>1h</retry_maxtime><minfree>0</minfree>").settings.queue
    assert (settings.provider, settings.rootpath, settings.retry.maxtime_s) == (MADE_UP, "/q", 3600.0)


def test_settings_of_other_providers_are_not_shown() -> None:
    shown = [value.path for value in loaded("").effective]
    assert "mta/queue/rootpath" in shown
    assert [path for path in shown if path.startswith(("mta/queue/journal", "mta/queue/spool", "mta/queue/maxcl"))] == []


def test_a_provider_that_the_program_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="write clustered") as refused:
        loaded("", ())
    assert refused.value.line == 3


def test_schema_sample_and_manual_say_whose_a_setting_is() -> None:
    sentence = f"{MAXCLUSTERSIZE.sentence} Of provider clustered alone."
    assert with_provider(MAXCLUSTERSIZE.sentence, MAXCLUSTERSIZE) == sentence
    assert sentence in write_schema()
    assert sentence in write_markdown()
    assert with_provider(JOURNAL.sentence, JOURNAL) in write_sample()
    line = next(line for line in write_sample().splitlines() if "<maxclustersize>" in line)
    assert line.endswith("(clustered, restart) -->")


def test_a_setting_may_belong_to_several_providers() -> None:
    both = Setting("x", count(), "0", "X.", providers=("log", "chunk"))
    assert [belongs_to(both, name) for name in ("log", "chunk", "clustered")] == [True, True, False]
    assert belongs_to(attrs.evolve(both, providers=()), "clustered")
    assert with_provider("X.", both) == "X. Of provider log and chunk alone."


def test_what_is_inside_a_block_belongs_to_fewer_providers_or_to_all_of_the_block() -> None:
    for item in QUEUE.content:
        if isinstance(item, Block) and item.providers:
            assert all(set(inner.providers) < set(item.providers) for inner in item.content)


@pytest.mark.parametrize(
    ("inner", "line", "what"),
    [
        ("<maxclustersize>1M</maxclustersize>", 5, "<maxclustersize>"),
        ("<journal>\n<maxage>1s</maxage></journal>", 6, "<maxage>"),
        ("<journal>\n\n<maxsize>1G</maxsize></journal>", 7, "<maxsize>"),
        ("<spool>\n<hardlinks>Y</hardlinks></spool>", 6, "<hardlinks>"),
    ],
)
def test_a_log_has_no_settings_of_clusters(inner: str, line: int, what: str) -> None:
    text = QUEUE_OF_IT.format(inner).replace(MADE_UP, "log").encode()
    with pytest.raises(ConfigError) as refused:
        load_tree(parse(text, "f.xml"), "f.xml", "mx.example.net", None, None, ("clustered", "log"))
    assert (refused.value.file, refused.value.line) == ("f.xml", line)
    assert refused.value.text == f'{what} belongs to provider clustered, and <queue provider> is "log": remove it'


def test_the_provider_alone_is_a_complete_configuration_of_a_log() -> None:
    config = load_tree(
        parse(b'<mailserver><mta><queue provider="log"/></mta></mailserver>', "f.xml"),
        *("f.xml", "mx.example.net", None, None, ("clustered", "log")),
    )
    shown = {value.path for value in config.effective if value.path.startswith("mta/queue/")}
    assert {"mta/queue/journal/segmentsize", "mta/queue/journal/largemsgsize", "mta/queue/spool/bufsize"} <= shown
    assert not shown & {"mta/queue/journal/maxage", "mta/queue/journal/maxsize", "mta/queue/spool/hardlinks"}


def test_an_error_about_a_setting_gets_the_line_of_the_element_around_it_where_it_is_not_written() -> None:
    config = loaded("")
    for path, line in (("mta/queue/@provider", 3), ("mta/queue/minfree", 3), ("admin/socket", 1)):
        assert str(config.locate(StartError(78, "why", path), "f.xml")) == f"f.xml:{line}: why"
    plain = StartError(78, "why")
    assert config.locate(plain, "f.xml") is plain
