"""A Dovecot whose users read the maildirs of another program over IMAP, with quotas counted in `maildirsize`."""

from __future__ import annotations

import contextlib
import imaplib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from mailismus.maildir.maildirsize import parse
from tests.scenarios.dovecot import OWNER, PATH, Dovecot, has_dovecot

IS_HERE = has_dovecot("imap")
_MORE = """protocols = imap
mail_location = maildir:{mail}/%n/Maildir
mail_plugins = quota
maildir_stat_dirs = yes
userdb {{
  driver = static
  args = uid={owner} gid={owner} home={mail}/%n
}}
protocol imap {{
  mail_plugins = quota imap_quota
}}
plugin {{
  quota = maildir:User quota
  quota_rule = *:bytes={limit}
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
"""


class DovecotMailboxes(Dovecot):
    """The running reader. `port`: IMAP, any password."""

    greeting = b"* OK"

    def __init__(self, directory: Path, mail: Path, limit_bytes: int) -> None:
        """`mail`: what the server under test calls its `userpath`. `limit_bytes`: the quota of each user."""
        super().__init__(directory)
        self.configure(_MORE.format(mail=mail, owner=OWNER, limit=limit_bytes, port=self.port))

    @contextlib.contextmanager
    def session(self, user: str) -> Iterator[imaplib.IMAP4]:
        """A user who has logged in."""
        session = imaplib.IMAP4("127.0.0.1", self.port, timeout=60)
        try:
            session.login(user, "any")
            yield session
        finally:
            session.logout()

    def quota_kib(self, user: str) -> int:
        """What a user has, in KiB, as Dovecot tells it."""
        with self.session(user) as session:
            session.select("INBOX")
            _, [_, [answer]] = session.getquotaroot("INBOX")
            found = _SIZES.search(answer)
            assert found is not None, answer
            return int(found[1])


_SIZES = re.compile(rb'"?STORAGE"? (\d+) ')


def as_owner() -> list[str]:
    """A command line in front of a server's: it runs as the user of the mail, and reads what only root may."""
    rights = [f"--{kind}-caps=+dac_override" for kind in ("inh", "ambient")]
    setpriv = shutil.which("setpriv", path=PATH) or "setpriv"
    return [setpriv, f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups", *rights]


def miscounted(maildir: Path, told_kib: int) -> str:
    """How `maildirsize`, Dovecot and the files of a maildir and its folders differ in what these come to; empty: not."""
    size = parse((maildir / "maildirsize").read_bytes())
    files = [path for path in maildir.rglob("*") if path.is_file() and path.parent.name in ("new", "cur")]
    total = sum(path.stat().st_size for path in files)
    held = size.held if size is not None else None
    if held is not None and (held.size_bytes, held.count, told_kib) == (total, len(files), -(-total // 1024)):
        return ""
    return f"{maildir.parent.name}: {len(files)} files of {total} bytes; maildirsize {held}, Dovecot {told_kib} KiB"
