"""Programs of Debian send by our `sendmail`, with a server and without one. One that is not installed is skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.sendmail.place import ROOT, Place

SCRIPT = """#!{python}
import os, sys
sys.path.insert(0, {root!r})
os.environ["MAILISMUS_CONFIG"] = {config!r}
from mailismus.programs import main
raise SystemExit(main())
"""
PATCH = """From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001
From: Joe <joe@our.example>
Date: Mon, 1 Jan 2024 00:00:00 +0000
Subject: [PATCH] a change
To: joe@our.example

.
---
 x | 1 +
"""
PHP = 'exit(mail("joe@our.example", "from PHP", "line\\n.\\nlast\\n", "Bcc: root@our.example\\r\\nX-A: b") ? 0 : 1);'


class Sending:
    """A server's place, and a program named `sendmail` that other programs can call."""

    def __init__(self, path: Path) -> None:
        self.place = Place(path)
        self.sendmail = path / "bin" / "sendmail"
        self.sendmail.parent.mkdir()
        self.sendmail.write_text(SCRIPT.format(python=sys.executable, root=str(ROOT), config=str(self.place.config)))
        self.sendmail.chmod(0o755)

    def run(self, words: Sequence[str], text: str = "", **environment: str) -> None:
        """Run a program, which must succeed."""
        if shutil.which(words[0]) is None:
            pytest.skip(f"{words[0]} is not installed")
        given = {**os.environ, "HOME": str(self.place.path), **environment}
        done = subprocess.run(words, input=text.encode(), capture_output=True, env=given, cwd=self.place.path, timeout=60)
        assert done.returncode == 0, done.stderr

    def cron(self) -> None:
        """The header and the call of Debian's cron, by a shell."""
        call = f"{self.sendmail} -FCronDaemon -i -B8BITMIME -oem root"
        header = "From: root (Cron Daemon)\nTo: root\nSubject: Cron <root@mx> echo x\nMIME-Version: 1.0\n"
        self.run(
            ["sh", "-c", call], header + "Content-Type: text/plain; charset=UTF-8\nX-Cron-Env: <LOGNAME=root>\n\nx\n.\ny\n"
        )

    def s_nail(self) -> None:
        words = ["s-nail", "-:/", "-S", f"mta={self.sendmail}", "-r", "joe@our.example", "-b", "root@our.example"]
        self.run([*words, "-s", "from s-nail", "joe@our.example"], "text\n.\nmore\n")

    def bsd_mailx(self) -> None:
        (self.place.path / "mailrc").write_text(f"set sendmail={self.sendmail}\n")
        words = ["bsd-mailx", "-b", "root@our.example", "-s", "from mailx", "joe@our.example"]
        self.run(words, "text\n", MAILRC=str(self.place.path / "mailrc"))

    def git(self) -> None:
        if not os.path.exists(os.path.join(subprocess.getoutput("git --exec-path"), "git-send-email")):
            pytest.skip("git send-email is not installed")
        if subprocess.run(["perl", "-MMail::Address", "-e1"], capture_output=True).returncode:
            pytest.skip("git send-email lacks Mail::Address (libmailtools-perl)")
        (self.place.path / "1.patch").write_text(PATCH)
        options = ["--from=joe@our.example", "--to=joe@our.example", "--confirm=never", "--quiet"]
        who = {f"GIT_{role}_{part}": "joe@our.example" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
        self.run(["git", "send-email", f"--smtp-server={self.sendmail}", *options, "1.patch"], **who)

    def php(self) -> None:
        self.run(["php", "-n", "-d", f"sendmail_path={self.sendmail} -t -i -fjoe@our.example", "-r", PHP])

    def python(self) -> None:
        """As a script does that knows no SMTP; the address is behind the end of the options."""
        self.run([str(self.sendmail), "-oi", "-f", "joe@our.example", "--", "joe@our.example"], "Subject: script\n\nx\n")


@pytest.mark.parametrize(
    ("program", "user", "words"),
    [
        ("cron", "root", [b"\nFrom: root (Cron Daemon)\n", b"\n\nx\n.\ny\n", b"\nMessage-ID: <"]),
        ("s_nail", "joe", [b"\nSubject: from s-nail\n", b"\ntext\n.\nmore\n"]),
        ("bsd_mailx", "joe", [b"\nSubject: from mailx\n", b"\ntext\n"]),
        ("git", "joe", [b"\nSubject: [PATCH] a change\n", b"\n.\n---\n"]),
        ("php", "joe", [b"\nSubject: from PHP\n", b"\nX-A: b\n", b"\nline\n.\nlast\n"]),
        ("python", "joe", [b"\nSubject: script\n", b"\nx\n"]),
    ],
)
def test_what_a_program_sends_arrives_with_a_server_and_without_one(
    tmp_path: Path, program: str, user: str, words: Sequence[bytes]
) -> None:
    sending = Sending(tmp_path)
    place = sending.place
    with place.server():
        getattr(sending, program)()
        place.wait_for_mail(1, user)
        assert place.dropped() == []
    getattr(sending, program)()
    assert place.dropped()
    with place.server():
        mails = place.wait_for_mail(2, user)
    for mail in mails:
        header, _, body = mail.partition(b"\n\n")
        assert all(word in mail for word in words), mail
        assert b"\nDate: " in header
        assert b"\nbcc" not in header.lower()
        assert b"\r" not in body
