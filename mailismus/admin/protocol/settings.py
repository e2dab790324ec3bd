"""Settings over the admin socket: one effective value a line (pure).

*Rules*: what files hold never goes over the socket, only a digest of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from mailismus.admin.protocol.wire import WireError, encode
from mailismus.config.values.effective import Effective


def encode_setting(value: Effective) -> bytes:
    """One effective value, as a line."""
    return encode(
        {
            "path": value.path,
            "place": value.place,
            "text": value.text,
            "asked": value.asked,
            "line": value.line,
            "fixed": value.is_fixed,
            "content": value.content.hex(),
        }
    )


def decode_setting(value: Mapping[str, object]) -> Effective:
    """The value that `encode_setting` wrote. Raises `WireError`."""
    texts = [value.get(name) for name in ("path", "place", "text", "asked", "content")]
    path, place, text, asked, content = (one if isinstance(one, str) else None for one in texts)
    line, is_fixed = value.get("line"), value.get("fixed")
    if path is None or place is None or text is None or asked is None or content is None:
        raise WireError("a setting is not as it should be")
    if not isinstance(line, int) or not isinstance(is_fixed, bool):
        raise WireError("a setting is not as it should be")
    try:
        digest = bytes.fromhex(content)
    except ValueError:
        raise WireError("a setting is not as it should be") from None
    return Effective(path, text, line, text != asked, place, is_fixed, digest, asked)
