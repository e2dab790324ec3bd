"""The elements of the table: settings, the blocks that contain them, and names that are known but not available.

The table itself, in the other modules of this room, joined by `root`, is the only home of every setting: the check of the
file, `config show`, the shipped sample and the schema all read it.

*Rules*: pure values. A default is written as in the file and goes through the same conversion as what is found there.
"""

from __future__ import annotations

import enum
from typing import Generic, TypeVar

import attrs

from mailismus.config.table.kinds import ValueKind

T_co = TypeVar("T_co", covariant=True)


class Form(enum.Enum):
    """How a setting is written."""

    ELEMENT = "element"
    ATTRIBUTE = "attribute"


class Occurs(enum.Enum):
    """How often a block may stand in the one around it."""

    ONCE = "once"
    OPTIONAL = "once; its presence has a meaning"
    MANY = "many"


@attrs.frozen
class Setting(Generic[T_co]):
    """One setting.

    `default` None: it must be written. `sample`: what the shipped sample says, where that is not the default;
    `example`: what it shows in a comment, for a setting whose default is "none" or worked out.
    `hidden`: taken, but not shown by `config show` or the sample, because only its default is built.
    `fixed`: it can't change while the server runs; a configuration that changes it is refused on SIGHUP.
    `of`: it is an attribute of that setting's element, which stands in the same block.
    `providers`: the queue providers that have it; none: all. Written under another it is refused.
    """

    name: str
    kind: ValueKind[T_co]
    default: str | None
    sentence: str
    form: Form = Form.ELEMENT
    sample: str | None = None
    example: str = ""
    hidden: bool = False
    fixed: bool = False
    of: str = ""
    providers: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """As named in messages."""
        return f"<{self.name}>" if self.form is Form.ELEMENT else f"attribute {self.name}"

    @property
    def key(self) -> str:
        """Its last step in a path: `name` or `@name`, or `setting/@name`."""
        if self.form is Form.ELEMENT:
            return self.name
        return f"{self.of}/@{self.name}" if self.of else "@" + self.name


@attrs.frozen
class Block:
    """An element that holds settings and blocks.

    `unbuilt`: shown in the manual, not built: refused as such. `original`: of the original Mailismus, not here.
    An attribute in these lists has an `@` before its name. `providers`: as in `Setting`, of all that is in it.
    """

    name: str
    sentence: str
    content: tuple[Setting[object] | Block, ...]
    occurs: Occurs = Occurs.ONCE
    unbuilt: tuple[str, ...] = ()
    original: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """As named in messages."""
        return f"<{self.name}>"

    @property
    def key(self) -> str:
        """Its step in a path."""
        return self.name

    @property
    def attributes(self) -> tuple[Setting[object], ...]:
        """The settings written as its attributes."""
        return self.attributes_of("")

    def attributes_of(self, setting: str) -> tuple[Setting[object], ...]:
        """Those written as attributes of the element of this setting; `""`: of its own."""
        written = (item for item in self.content if isinstance(item, Setting) and item.form is Form.ATTRIBUTE)
        return tuple(item for item in written if item.of == setting)

    @property
    def elements(self) -> tuple[Setting[object] | Block, ...]:
        """What is written as an element: settings and blocks."""
        return tuple(item for item in self.content if isinstance(item, Block) or item.form is Form.ELEMENT)


def belongs_to(item: Setting[object] | Block, provider: str) -> bool:
    """Whether a queue of this provider has the setting or block."""
    return not item.providers or provider in item.providers


def with_provider(sentence: str, item: Setting[object] | Block) -> str:
    """The sentence, and which providers have the setting or block, where not all have it."""
    return f"{sentence} Of provider {' and '.join(item.providers)} alone." if item.providers else sentence
