"""Link probe: whether the file system of a spool has hard links, tried by a start. Blocks."""

from __future__ import annotations

import errno
import os

from twisted.logger import Logger

from mailismus.disk.interface import IDisk
from mailismus.errors import StartError
from mailismus.spool.quarantine import NO_LINKS

LINK_PROBES = ("link-probe", "link-probe-2")
"""Names of its files in the spool's directory. They are left there only when a start is stopped in between."""

_log = Logger()


def probe_links(disk: IDisk, spool_path: str) -> None:
    """Raise `StartError` where the file system of the spool has no hard links; `OSError`."""
    paths = [os.path.join(spool_path, name) for name in LINK_PROBES]
    try:
        for path in paths:
            if disk.exists(path):
                disk.unlink(path)
        disk.create(paths[0]).close()
        disk.link(*paths)
    except OSError as error:
        if error.errno in NO_LINKS:
            what = f"<hardlinks> is Y, but the file system of {spool_path} has no hard links ({error.strerror})"
            text = f"{what}: write <hardlinks>N</hardlinks>"
            raise StartError(os.EX_CONFIG, text, "mta/queue/spool/hardlinks") from error
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):  # a full one is no reason not to start
            raise
        _log.warn("Whether {path} has hard links could not be tried: {error}", path=spool_path, error=error)
    finally:
        for path in paths:
            if disk.exists(path):
                disk.unlink(path)
