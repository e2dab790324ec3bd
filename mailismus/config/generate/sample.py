"""The sample: the shipped configuration file, every setting that is built with its default and one sentence.

*Rules*: written from the table alone. Where the sample must say something else than the default, so that it works as it
stands on one host (`Setting.sample`), its sentence ends with the default. A block whose being there says something is in a
comment, and so is one that must have an attribute that can only be an example, and a setting of other providers than the
default one, which would be refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from mailismus.config.table.queue import PROVIDER
from mailismus.config.table.root import MAILSERVER
from mailismus.config.table.words import Block, Occurs, Setting, belongs_to, with_provider

WIDTH = 100
_PROVIDER = PROVIDER.default or ""
_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<?xml-model href="mailismus.rng" schematypens="http://relaxng.org/ns/structure/1.0"?>
<!--
  A server on this host alone: it listens on 127.0.0.1 port 2525, keeps the mail of one user, alice@example.net, under
  var/ms and hands everything else to a relay on 127.0.0.1 port 8025.

  Every setting is here with its default, but those whose comment ends with "default: ..."; what is left out has its
  default too. Order is free. Times: 1h30m, units d h m s ms. Sizes: K M G of 1,000, Ki Mi Gi of 1,024. Lists are
  separated by "|". After a change: mailismus config check, then SIGHUP, or a restart for what is
  marked so.
-->
"""


def write_sample() -> str:
    """The whole file."""
    return _HEAD + "".join(f"{line}\n" for line in _write_block(MAILSERVER))


def _comment(text: str) -> str:
    return f"<!-- {escape(text).replace('--', '- -')} -->"


def _indent(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _write_block(block: Block) -> Iterator[str]:
    said = {setting.name: setting.example if _is_example(block) else _said(setting) for setting in block.attributes}
    is_foreign = not belongs_to(block, _PROVIDER)
    tag = " ".join([block.name, *(f"{name}={quoteattr(text)}" for name, text in said.items() if text)])
    yield _comment(with_provider(block.sentence, block))
    for setting in block.attributes:
        yield _comment(f"{setting.name}: {_sentence(setting)}")
    if block.occurs is Occurs.OPTIONAL or _is_example(block) or is_foreign:
        yield from _write_example(block, tag)
        return
    if not block.elements:
        yield f"<{tag}/>"
        return
    yield f"<{tag}>"
    for item in block.elements:
        if isinstance(item, Block):
            yield from _indent(_write_block(item))
        elif not item.hidden:
            yield from _indent(_write_setting(item))
            for attribute in block.attributes_of(item.name):
                yield from _indent(iter([_comment(f"{attribute.name} of {item.name}: {_sentence(attribute)}")]))
    yield f"</{block.name}>"


def _is_example(block: Block) -> bool:
    """Whether it has nothing of its own to say in a file that works as it stands: what it must have is an example."""
    return any(setting.default is None and setting.example for setting in block.attributes)


def _write_example(block: Block, tag: str) -> Iterator[str]:
    """An optional block of settings, as a comment."""
    inner = ""
    for item in block.elements:
        if isinstance(item, Setting):
            yield _comment(f"{item.name}: {_sentence(item)}")
            inner += f"<{item.name}>{escape(_said(item))}</{item.name}>"
    yield f"<!-- <{tag}>{inner}</{block.name}> -->" if inner else f"<!-- <{tag}/> -->"


def _write_setting(setting: Setting[object]) -> Iterator[str]:
    if setting.example or not belongs_to(setting, _PROVIDER):
        said = setting.example or _said(setting)
        yield (
            _comment(f"<{setting.name}>{said}</{setting.name}>: {_sentence(setting)}")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
        )
        return
    line = f"<{setting.name}>{escape(_said(setting))}</{setting.name}>"
    yield f"{line:<48} {_comment(_sentence(setting))}"


def _said(setting: Setting[object]) -> str:
    return setting.sample if setting.sample is not None else setting.default or ""


def _sentence(setting: Setting[object]) -> str:
    notes = [*setting.providers, *(["restart"] if setting.fixed else [])]
    return _plain_sentence(setting) + (f" ({', '.join(notes)})" if notes else "")


def _plain_sentence(setting: Setting[object]) -> str:
    if setting.sample is None or setting.default is None or "by default" in setting.sentence:
        return setting.sentence
    home = setting.default or "none"
    return f"{setting.sentence.removesuffix('.')}; default: {home}."
