"""The host's full name, found without asking any network: the kernel's host name, and /etc/hosts to complete it."""

from __future__ import annotations

import socket

from mailismus.config.read.files import Files
from mailismus.config.values.names import parse_domain
from mailismus.config.values.units import UnitError

HOSTS_FILE = "/etc/hosts"
MAX_BYTES = 2**20
FALLBACK = "localhost.localdomain"


def find_host_name(short_name: str, hosts_text: str) -> str:
    """The full name of a host: `short_name` where it has a dot, else the first name of its line in the hosts file that
    has one; failing that `short_name` itself, or `FALLBACK` where it is no domain name."""
    try:
        short_name = parse_domain(short_name.rstrip("."))
    except UnitError:
        return FALLBACK
    if "." in short_name:
        return short_name
    for line in hosts_text.splitlines():
        names = [name.lower() for name in line.partition("#")[0].split()[1:]]
        if short_name in names:
            for name in names:
                if "." in name and name.partition(".")[0] == short_name:
                    try:
                        return parse_domain(name)
                    except UnitError:
                        continue
    return short_name


def host_name(files: Files) -> str:
    """This host's full name, as well as it can be known here and now."""
    try:
        hosts_text = files.read(HOSTS_FILE, MAX_BYTES).data.decode("utf-8", "replace")
    except OSError:
        hosts_text = ""
    return find_host_name(socket.gethostname(), hosts_text)
