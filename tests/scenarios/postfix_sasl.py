"""A Postfix with TLS that demands authentication by Dovecot, as a relay for tests: on a free port, with its own directories.

Needs root, and the packages postfix and dovecot-core. Mail that it takes is discarded; its log tells what it took and from
whom.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.certificates import Made
from tests.project.runners import await_text
from tests.scenarios.postfix_peer import Postfix, can_run

PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
IS_HERE = can_run() and shutil.which("dovecot", path=PATH) is not None

_SETTINGS = """mynetworks =
smtpd_tls_auth_only = yes
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = {dir}/auth/auth.sock
smtpd_sasl_security_options = noanonymous
smtpd_relay_restrictions = permit_sasl_authenticated, reject
smtpd_recipient_restrictions = permit_sasl_authenticated, reject
smtpd_client_connection_count_limit = 0
"""
_DOVECOT = """protocols =
ssl = no
base_dir = {dir}/run
state_dir = {dir}/state
log_path = {dir}/dovecot.log
info_log_path = {dir}/dovecot.log
auth_verbose = yes
auth_mechanisms = {mechanisms}
passdb {{
  driver = passwd-file
  args = scheme=PLAIN username_format=%u {dir}/users
}}
userdb {{
  driver = static
  args = uid=65534 gid=65534 home=/nonexistent
}}
service auth {{
  unix_listener {dir}/auth/auth.sock {{
    mode = 0666
  }}
}}
service stats {{
  chroot =
}}
"""


class PostfixWithUsers:
    """The running relay."""

    def __init__(self, postfix: Postfix, log: Path) -> None:
        self.port, self._log = postfix.ports["relay"], log

    @property
    def log(self) -> str:
        """What Postfix logged."""
        return self._log.read_text()

    def await_text(self, text: str) -> str:
        """Its log, once it holds that."""
        return await_text(self._log, text)


@contextmanager
def postfix_with_users(made: Made, user: str, password: str, mechanisms: str) -> Iterator[PostfixWithUsers]:
    """A Postfix that takes mail from this user alone, by these mechanisms (as Dovecot names them)."""
    directory = Path(tempfile.mkdtemp(prefix="peer-", dir="/tmp"))  # Postfix's users must get into it
    directory.chmod(0o755)
    for name in ("run", "state", "auth"):
        (directory / name).mkdir(mode=0o755)
    (directory / "dovecot.conf").write_text(_DOVECOT.format(dir=directory, mechanisms=mechanisms))
    (directory / "users").write_text(f"{user}:{password}\n")
    (directory / "users").chmod(0o644)
    postfix = Postfix(directory, made, {"relay": made}, _SETTINGS.format(dir=directory))
    words = [shutil.which("dovecot", path=PATH) or "dovecot", "-F", "-c", f"{directory}/dovecot.conf"]
    try:
        with (directory / "dovecot.out").open("wb") as output:
            dovecot = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        try:
            await_text(directory / "dovecot.log", "starting up")
            postfix.start()
            yield PostfixWithUsers(postfix, directory / "log")
        except Exception as error:
            for log in (directory / "log", directory / "dovecot.log"):
                error.add_note(f"{log.name}: {log.read_text() if log.exists() else 'not there'}")
            raise
        finally:
            postfix.stop()
            os.killpg(dovecot.pid, signal.SIGTERM)
            try:
                dovecot.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(dovecot.pid, signal.SIGKILL)
                dovecot.wait()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
