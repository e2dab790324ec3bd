"""A Dovecot that keeps mailboxes for tests: LMTP on a Unix socket and a TCP port, users with quotas, directories of its own.

Needs root, and the packages dovecot-core and dovecot-lmtpd.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.scenarios.dovecot import OWNER, Dovecot, has_dovecot

IS_HERE = has_dovecot("lmtp")
_MORE = """protocols = lmtp
mail_location = maildir:{dir}/mail/%n
mail_plugins = quota
mail_fsync = never
lda_mailbox_autocreate = yes
userdb {{
  driver = passwd-file
  args = username_format=%n {dir}/users
}}
plugin {{
  quota = maildir:User quota
}}
quota_full_tempfail = {tempfail}
service lmtp {{
  unix_listener {dir}/lmtp {{
    mode = 0666
  }}
  inet_listener lmtp {{
    port = {port}
  }}
}}
"""


class DovecotStore(Dovecot):
    """The running store. `socket_path`, `port`: where it takes mail."""

    greeting = b"220 "

    def __init__(self, directory: Path, quotas: Mapping[str, int], *, is_full_for_now: bool = True) -> None:
        """`quotas`: users, and how many bytes each may have; 0: no limit."""
        super().__init__(directory)
        self.socket_path = directory / "lmtp"
        (directory / "mail").mkdir(mode=0o755)
        os.chown(directory / "mail", OWNER, OWNER)
        tempfail = "yes" if is_full_for_now else "no"
        self.configure(_MORE.format(dir=directory, port=self.port, tempfail=tempfail))
        self.set_quotas(quotas)

    def set_quotas(self, quotas: Mapping[str, int]) -> None:
        """Write the users anew. Who had a limit keeps it until another one is written."""
        lines = []
        for user, limit in quotas.items():
            more = f" userdb_quota_rule=*:bytes={limit}" if limit else ""
            lines.append(f"{user}::{OWNER}:{OWNER}::{self.directory}/mail/{user}::{more.strip()}\n")
        (self.directory / "users").write_text("".join(lines))
        (self.directory / "users").chmod(0o644)

    def mails(self, user: str) -> list[bytes]:
        """What lies in the mailbox of a user."""
        found = []
        for folder in ("new", "cur"):
            path = self.directory / "mail" / user / folder
            found += [one.read_bytes() for one in sorted(path.iterdir())] if path.is_dir() else []
        return found


@contextmanager
def dovecot_store(directory: Path, quotas: Mapping[str, int], *, is_full_for_now: bool = True) -> Iterator[DovecotStore]:
    """A Dovecot that runs. Its users must get into `directory`."""
    store = DovecotStore(directory, quotas, is_full_for_now=is_full_for_now)
    store.start()
    try:
        yield store
    finally:
        store.stop()
