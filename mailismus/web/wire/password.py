"""The password of the page: Basic authentication (RFC 7617). Pure.

*Rules*: name and password are compared as one, by keyed digests, in a time that does not depend on where they differ. The
password itself is not kept.
"""

from __future__ import annotations

import base64
import binascii
import hmac

CHALLENGE = (b"WWW-Authenticate", b'Basic realm="Mailismus", charset="UTF-8"')
_SCHEME = b"basic "


class Password:
    """One name with its password. `key`: random bytes of this process."""

    def __init__(self, username: str, secret: bytes | bytearray, key: bytes) -> None:
        self._key = key
        self._digest = self._digest_of(b":".join((username.encode("utf-8"), secret)))

    def is_in(self, authorization: bytes) -> bool:
        """Whether this value of the field `Authorization` has both."""
        if authorization[: len(_SCHEME)].lower() != _SCHEME:
            return False
        try:
            given = base64.b64decode(authorization[len(_SCHEME) :].strip(), validate=True)
        except (binascii.Error, ValueError):
            return False
        return hmac.compare_digest(self._digest_of(given), self._digest)

    def _digest_of(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, "sha256")
