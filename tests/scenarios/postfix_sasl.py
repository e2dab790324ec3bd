"""A Postfix with TLS that demands authentication by Dovecot, as a relay for tests: on a free port, with its own directories.

Needs root, and the packages postfix and dovecot-core. Mail that it takes is discarded; its log tells what it took and from
whom.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.certificates import Made
from tests.project.runners import await_text

PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
IS_HERE = os.geteuid() == 0 and all(shutil.which(name, path=PATH) for name in ("postfix", "dovecot"))

_MAIN = """compatibility_level = 3.6
config_directory = {dir}/etc
queue_directory = {dir}/queue
data_directory = {dir}/data
maillog_file = {dir}/mail.log
maillog_file_prefixes = {dir}
myhostname = postfix.example
mydestination =
mynetworks =
inet_interfaces = loopback-only
inet_protocols = ipv4
alias_maps =
alias_database =
default_transport = discard
relay_transport = discard
smtpd_peername_lookup = no
smtpd_tls_security_level = may
smtpd_tls_cert_file = {dir}/etc/cert.pem
smtpd_tls_key_file = {dir}/etc/key.pem
smtpd_tls_loglevel = 2
smtpd_tls_auth_only = yes
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = {dir}/auth/auth.sock
smtpd_sasl_security_options = noanonymous
smtpd_relay_restrictions = permit_sasl_authenticated, reject
smtpd_recipient_restrictions = permit_sasl_authenticated, reject
smtpd_client_connection_count_limit = 0
"""
_MASTER = """127.0.0.1:{port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
proxywrite unix - - n - 1 proxymap
smtp unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
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

    def __init__(self, directory: Path, port: int) -> None:
        self.directory, self.port = directory, port

    @property
    def log(self) -> str:
        """What Postfix logged."""
        return (self.directory / "mail.log").read_text()

    def await_text(self, text: str) -> str:
        """Its log, once it holds that."""
        return await_text(self.directory / "mail.log", text)


@contextmanager
def postfix_with_users(made: Made, user: str, password: str, mechanisms: str) -> Iterator[PostfixWithUsers]:
    """A Postfix that takes mail from this user alone, by these mechanisms (as Dovecot names them)."""
    directory = Path(tempfile.mkdtemp(prefix="peer-", dir="/tmp"))  # Postfix's users must get into it
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    directory.chmod(0o755)
    for name in ("etc", "queue", "data", "run", "state", "auth"):
        (directory / name).mkdir(mode=0o755)
    shutil.chown(directory / "data", "postfix")
    (directory / "etc/cert.pem").write_bytes(made.pem)
    (directory / "etc/key.pem").write_bytes(made.key_pem)
    (directory / "etc/key.pem").chmod(0o600)
    (directory / "etc/main.cf").write_text(_MAIN.format(dir=directory))
    (directory / "etc/master.cf").write_text(_MASTER.format(port=port))
    (directory / "etc/dovecot.conf").write_text(_DOVECOT.format(dir=directory, mechanisms=mechanisms))
    (directory / "users").write_text(f"{user}:{password}\n")
    (directory / "users").chmod(0o644)
    environment = {**os.environ, "PATH": PATH}
    processes = []
    try:
        for words in (
            ["dovecot", "-F", "-c", f"{directory}/etc/dovecot.conf"],
            ["postfix", "-c", f"{directory}/etc", "start-fg"],
        ):
            output = (directory / f"{words[0]}.out").open("wb")
            processes.append(
                subprocess.Popen(
                    words, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
                )
            )
        await_text(directory / "mail.log", "daemon started")
        yield PostfixWithUsers(directory, port)
    finally:
        stop = ["postfix", "-c", f"{directory}/etc", "stop"]  # its master has a group of its own
        subprocess.run(stop, env=environment, check=False, capture_output=True, timeout=60)
        for process in processes:
            os.killpg(process.pid, signal.SIGTERM)
        for process in processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        shutil.rmtree(directory, ignore_errors=True)
