"""A Dovecot whose users read the maildirs of another program over IMAP, with quotas counted in `maildirsize`."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.dovecot import OWNER, Dovecot, has_dovecot

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
