"""Which answers say that a store has no room, or that our quota there is used up. Pure.

507 says so at each of them. A quota is told by other codes, which also mean other things: there the body decides.

*Not here*: the proxy of Swift whose servers have no room. It counts those that took the object, and says 503 of too few,
with the same body whether they were full, dead or late.
"""

from __future__ import annotations

import re

FULL = 507
TOO_LARGE = 413
_S3_CODE = re.compile(rb"<Code>\s*(\w{1,64})\s*</Code>")
_S3_FULL = frozenset((b"QuotaExceeded", b"XMinioStorageFull", b"XMinioAdminBucketQuotaExceeded"))
"""Of Ceph, and of MinIO."""
_LOOKED_AT = 4096


def is_s3_full(code: int, answer: bytes) -> bool:
    """Whether an answer of S3 says so, whose status is `code`."""
    found = _S3_CODE.search(answer[:_LOOKED_AT])
    return code == FULL or (code >= 400 and found is not None and found[1] in _S3_FULL)


def is_swift_full(code: int, answer: bytes) -> bool:
    """The same of Swift, whose quotas are told as objects that are too large."""
    return code == FULL or (code == TOO_LARGE and b"quota" in answer[:_LOOKED_AT].lower())
