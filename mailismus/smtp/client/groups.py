"""Groups of commands: the envelope of a transaction, cut into pieces that are sent ahead together (RFC 2920 3.1). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.smtp.client.state import Awaited

Group = tuple[bytes, Sequence[Awaited]]
"""Commands that are sent together, and what their replies answer."""

_DATA = b"DATA\r\n"
_LEAST = 3
"""The smallest group in which recipients are joined: RSET, MAIL and RCPT. Smaller ones are cut command by command."""

# In Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_TO_RECIPIENT, _TO_DATA = Awaited.RECIPIENT, Awaited.DATA


def make_groups(begin: Sequence[Group], recipients: Sequence[bytes], size: int) -> list[Group]:
    """Return the commands of an envelope in groups of at most `size`. `begin`: the commands before the first RCPT."""
    if size < _LEAST:
        single = [*begin, *[(b"RCPT TO:<%b>\r\n" % one, (_TO_RECIPIENT,)) for one in recipients], (_DATA, (_TO_DATA,))]
        cut = [single[i : i + size] for i in range(0, len(single), size)]
        return [(b"".join([text for text, _ in group]), [one for _, to in group for one in to]) for group in cut]
    groups: list[Group] = []
    text = b"".join([command for command, _ in begin])
    awaited = [one for _, to in begin for one in to]
    position, end = 0, len(recipients)
    while True:
        some = recipients[position : position + size - len(awaited)]
        if some:
            position += len(some)
            text += b"RCPT TO:<%b>\r\n" % b">\r\nRCPT TO:<".join(some)
            awaited += [_TO_RECIPIENT] * len(some)
        if position == end and len(awaited) < size:
            awaited.append(_TO_DATA)
            groups.append((text + _DATA, awaited))
            return groups
        groups.append((text, awaited))
        text, awaited = b"", []
