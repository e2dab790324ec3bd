"""Names: domains, users, hosts with ports, and tokens in paths, as people write them.

*Rules*: pure. Domain and user names come out in lower case. User names become names of directories: the alphabet is
closed and none begins with a dot. Tokens are expanded once: what a token stands for is not looked at again.
"""

from __future__ import annotations

import ipaddress
import posixpath
import re
from collections.abc import Mapping

from mailismus.config.values.units import UnitError, parse_count
from mailismus.mail.address import is_domain, is_mailbox
from mailismus.mail.networks import unmapped

DOMAIN_FORM = "a domain name such as mail.example.net"
SENDER_FORM = "an address such as joe@a.example, or a domain"
PATTERN_FORM = "mail.example for that domain alone, or *.mail.example for every domain below it"
USER_FORM = 'a-z, 0-9, "_", "+", "-" and single dots inside, not beginning with "-", at most 64 characters'
ADDRESS_FORM = "HOST:PORT, such as relay.example.net:25, 192.0.2.1 or [2001:db8::1]:587"
ACCOUNT_FORM = "names or numbers of system users, or *"
MAILBOX_FORM = "an address such as postmaster@example.net"
PARTS_FORM = "different letters out of #, X, R, I, M, P and Q, such as MPQ, or n_m"
_PARTS = frozenset("#XRIMPQ")
LMTP_FORM = "unix:PATH, such as unix:/run/dovecot/lmtp, or HOST:PORT, such as 127.0.0.1:24"
MAX_TEXT = 200
MAX_SOCKET_NAME_BYTES = 80
"""Bytes of a socket's own name, without its directory: `/proc/self/fd/N/NAME` fits into the 107 that the system allows."""
MAX_SOCKET_PATH_BYTES = 107
"""Bytes of the path of a socket to which the system connects."""
_MAX_PATH_BYTES = 4095
_MAX_NAME_BYTES = 255
TEXT_FORM = f"a line of text, at most {MAX_TEXT} characters"
DATE_TOKENS = ("DT", "Y", "M", "D", "h")
"""Of names of log files: the day, its year, month and day, and the hour."""
TOKENS = ("DIRTOP", "DIRCONF", "DIRVAR", "DIRLOG", "SYSNAME")

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_USER = re.compile(r"(?=.{1,64}\Z)[a-z0-9_+][a-z0-9_+-]*(?:\.[a-z0-9_+-]+)*")
_ACCOUNT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\$?")
_TOKEN = re.compile(r"%(?:([A-Za-z_]+)%)?")
_SOCKET_PATH = re.compile(r"[!-~]+")
_LISTENER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


def parse_domain(text: str) -> str:
    """A domain as it may stand in an address, lower case, no dot at its end (RFC 5321 4.1.2)."""
    name = _bare_name(text)
    if not is_domain(name.encode("ascii")) or name.rpartition(".")[2].isdigit():
        raise UnitError(f'"{text}" is not a domain name: write {DOMAIN_FORM}')
    return name


def parse_domain_pattern(text: str) -> str:
    """A domain, or `*.` and a domain for all that are below it; lower case."""
    if "*" not in text:
        return parse_domain(text)
    name = text.removeprefix("*.")
    if name == text or "*" in name:
        raise UnitError(f'"{text}" has a "*" that is not its first label: write {PATTERN_FORM}')
    return "*." + parse_domain(name)


def parse_sender(text: str) -> str:
    """A mailbox, or a domain that stands for all of its mailboxes; lower case."""
    if "@" not in text:
        return parse_domain(text)
    if not text.isascii() or not is_mailbox(text.encode("ascii")):
        raise UnitError(f'"{text}" is not an address: write {SENDER_FORM}')
    return text.lower()


def parse_host_name(text: str) -> str:
    """The name of a host as DNS or /etc/hosts has it, lower case: a domain that may have "_" too."""
    name = _bare_name(text)
    if not _HOST.fullmatch(name) or len(name) > 253 or name.rpartition(".")[2].isdigit():
        raise UnitError(f'"{text}" is not a host name: write {DOMAIN_FORM}')
    return name


def _bare_name(text: str) -> str:
    if not text.isascii():
        raise UnitError(f'"{text}" is not in ASCII: write its xn-- form')
    if text.endswith("."):
        raise UnitError(f'"{text}" ends with a dot: write {text.rstrip(".")}')
    return text.lower()


def parse_user(text: str) -> str:
    """A user name, lower case."""
    name = text.lower()
    if not name.isascii() or not _USER.fullmatch(name):
        raise UnitError(f'"{text}" can\'t be a user: write {USER_FORM}')
    return name


def parse_account(text: str) -> str:
    """A user of the system, by name or number, in the case it was written; or `*`, all of them."""
    if text != "*" and not _ACCOUNT.fullmatch(text):
        raise UnitError(f'"{text}" can\'t be a user of the system: write {ACCOUNT_FORM}')
    return text


def parse_mailbox(text: str) -> str:
    """An address as it stands in an envelope, `local-part@domain`, in the case it was written."""
    if not text.isascii() or not is_mailbox(text.encode("ascii")):
        raise UnitError(f'"{text}" is not an address: write {MAILBOX_FORM}')
    return text


def parse_text(text: str) -> str:
    """One line for people to read; blanks in a row are one."""
    line = " ".join(text.split())
    if not line or len(line) > MAX_TEXT or not line.isprintable():
        raise UnitError(f"write {TEXT_FORM}")
    return line


def parse_listener_name(text: str) -> str:
    """The name of a listener: what the ready line and the log call it."""
    if not _LISTENER.fullmatch(text):
        raise UnitError('write letters, digits, ".", "_" and "-", at most 32, the first a letter or digit')
    return text


def parse_interface(text: str) -> str:
    """An IP address of this host, or empty for all interfaces; brackets around IPv6 are dropped."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if not bare:
        return ""
    try:
        return str(unmapped(ipaddress.ip_address(bare)))
    except ValueError:
        raise UnitError(
            "write an IP address of this host such as 127.0.0.1 or ::1, or leave it out for all interfaces"
        ) from None


def parse_port(text: str, lowest: int) -> int:
    """A TCP port from `lowest` (0 or 1) to 65535."""
    port = parse_count(text)
    if not lowest <= port <= 65535:
        raise UnitError(f"write a port from {lowest} to 65535")
    return port


def parse_host_port(text: str, default_port: int) -> tuple[str, int]:
    """`host`, `host:port`, `[v6]` or `[v6]:port`: host name (lower case) or IP address without brackets, and port."""
    try:
        if "%" in text:
            raise UnitError("a zone means something on one host alone")
        if text.startswith("["):
            host, bracket, rest = text[1:].partition("]")
            if not bracket or (rest and not rest.startswith(":")):
                raise UnitError("no host")
            return str(unmapped(ipaddress.IPv6Address(host))), parse_port(rest[1:], 1) if rest else default_port
        if text.count(":") > 1:
            return str(unmapped(ipaddress.IPv6Address(text))), default_port
        host, colon, port_text = text.partition(":")
        port = parse_port(port_text, 1) if colon else default_port
        if host.replace(".", "").isdigit():
            return str(ipaddress.IPv4Address(host)), port
        return parse_host_name(host), port
    except ValueError as error:
        reason = f" ({error})" if isinstance(error, UnitError) and str(error).startswith("write a port") else ""
        raise UnitError(f'"{text}" is not a host{reason}: write {ADDRESS_FORM}') from None


def format_host_port(endpoint: tuple[str, int]) -> str:
    """Host and port as `parse_host_port` takes them: `192.0.2.1:25`, `[2001:db8::1]:25`."""
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_name_parts(text: str) -> str:
    """The parts of unique names, which tell all writes of all processes apart."""
    if text == "n":
        raise UnitError("n alone is the process, and this one makes many deliveries: write n_m")
    if text == "n_m":
        return text
    parts = set(text)
    if not parts or parts - _PARTS or len(parts) < len(text):
        raise UnitError(f"write {PARTS_FORM}")
    if not parts & {"Q", "R", "#"}:
        raise UnitError("two deliveries of one moment would have one name: add Q, R or #")
    if not (parts & {"P", "R"} or parts >= {"#", "X"}):
        raise UnitError("deliveries of two processes would have one name: add P or R, or # with X")
    return text


def parse_lmtp_server(text: str, base: str, values: Mapping[str, str]) -> tuple[str, int]:
    """`unix:PATH`: the absolute path of a socket, and 0; else as `parse_host_port`, where the port must be written."""
    kind, colon, path = text.partition(":")
    if kind == "unix" and colon:
        found = parse_path(path, base, values)
        if not _SOCKET_PATH.fullmatch(found) or {"[", "]", ","} & set(found):
            raise UnitError('write a path of ASCII without blanks, ",", "[" and "]": it stands in the log')
        if len(found) > MAX_SOCKET_PATH_BYTES:
            raise UnitError(f"write a path of at most {MAX_SOCKET_PATH_BYTES} bytes: the system takes no longer one")
        return found, 0
    if text.startswith("/"):
        raise UnitError(f"write unix:{text}")
    try:
        host, port = parse_host_port(text, 0)
    except UnitError:
        raise UnitError(f"write {LMTP_FORM}") from None
    if not port:
        raise UnitError("it has no port, and LMTP has no port of its own: write HOST:PORT, such as 127.0.0.1:24")
    return host, port


def parse_ip_port(text: str, default_port: int) -> tuple[str, int]:
    """As `parse_host_port`, of an IP address only."""
    try:
        host, port = parse_host_port(text, default_port)
        return str(ipaddress.ip_address(host)), port
    except ValueError:
        raise UnitError(
            f'"{text}" is not the address of a name server: write an IP address, such as 192.0.2.53 or [2001:db8::1]:53'
        ) from None


def expand_tokens(text: str, values: Mapping[str, str]) -> str:
    """`text` with every `%NAME%` replaced once. A name that is not in `values` is an error, and so is a `%` alone."""

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in values:
            return values[name]
        if name in TOKENS:
            raise UnitError(f"%{name}% can't be used here: it is not known yet")
        found = f"there is no token %{name}%" if name else "a % is no token"
        raise UnitError(f"{found}: write one of " + " ".join(f"%{known}%" for known in dict.fromkeys((*TOKENS, *values))))

    return _TOKEN.sub(value_of, text)


def parse_path(text: str, base: str, values: Mapping[str, str]) -> str:
    """An absolute path: tokens expanded, begun at the absolute path `base` where relative, `.` and `..` resolved by text."""
    if not text:
        raise UnitError("write a path")
    return posixpath.normpath(posixpath.join(base, expand_tokens(text, values)))


def parse_log_file(text: str, base: str, values: Mapping[str, str]) -> str:
    """The same for a log file, whose name may hold dates: those stay as they are written."""
    return parse_path(text, base, {**values, **{name: f"%{name}%" for name in DATE_TOKENS}})


def check_socket_path(path: str) -> None:
    """Raise `UnitError` where no Unix socket can have this absolute path.

    The system bounds a file's name at 255 bytes, a path at 4,095 and the name of a socket at 107. A socket with a longer
    path goes by a descriptor of its directory, so its own name alone is bounded, by what is left beside that descriptor.
    """
    size, name_size = _bytes_of(path), _bytes_of(posixpath.basename(path))
    if name_size > MAX_SOCKET_NAME_BYTES:
        raise UnitError(f"the socket's own name has {name_size} bytes: write one of at most {MAX_SOCKET_NAME_BYTES}")
    if size > _MAX_PATH_BYTES:
        raise UnitError(f"the path has {size} bytes: write one of at most {_MAX_PATH_BYTES}")
    for part in posixpath.dirname(path).split("/"):
        if _bytes_of(part) > _MAX_NAME_BYTES:
            raise UnitError(f"a directory's name has {_bytes_of(part)} bytes: write one of at most {_MAX_NAME_BYTES}")


def _bytes_of(name: str) -> int:
    """How long a name is in the file system."""
    return len(name.encode("utf-8", "surrogateescape"))


def parse_inner_path(text: str) -> str:
    """A path below some directory: relative, never leading out of it."""
    path = posixpath.normpath(text) if text else ""
    if not path or path == "." or path.startswith(("/", "../")) or path == ".." or "%" in path:
        raise UnitError('write a relative path without ".." and tokens, such as Maildir')
    return path
