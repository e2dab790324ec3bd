"""Assembling, part 8: `<listener>`s, checked against each other, with the certificates that they name.

*Rules*: no two listeners share a name, nor a port on one interface. Every error names its element and line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from mailismus.config.read.certificates import check_pair, read_chain, read_key
from mailismus.config.read.check import Given, Value
from mailismus.config.read.effective import Key
from mailismus.config.read.files import Files
from mailismus.config.read.lists import digest_of
from mailismus.config.read.relays import SUBMISSIONS_PORT
from mailismus.config.table import submit as sub
from mailismus.config.values.certificates import NamedCertificate
from mailismus.config.values.settings import ListenerSettings, ServerSettings, SslSettings
from mailismus.config.values.units import UnitError
from mailismus.errors import ConfigError
from mailismus.mail.networks import Networks


class ListenerReader:
    """Reads the listeners of one configuration. `notes`, `contents` and `certificates`: as of `TlsReader`; all are added to.
    The constructor and `read` raise `ConfigError`."""

    def __init__(
        self,
        listeners: Sequence[Given],
        file: str,
        files: Files,
        notes: list[str],
        contents: dict[Key, bytes],
        certificates: list[NamedCertificate],
    ) -> None:
        """Give default ports to the listeners, and check them against each other."""
        self._listeners, self._file, self._files = listeners, file, files
        self._notes, self._contents, self._certificates = notes, contents, certificates
        self._names = self._find_names()
        self._settle_ports()
        self._check_ports()

    def read(self, limits: Sequence[int]) -> tuple[ListenerSettings, ...]:
        """The settings of all listeners. `limits`: how many connections each may have."""
        return tuple(
            self._listener(listener, name, limit)
            for listener, name, limit in zip(self._listeners, self._names, limits, strict=True)
        )

    def _refuse(self, line: int, text: str) -> NoReturn:
        raise ConfigError(self._file, line, text)

    def _find_names(self) -> list[str]:
        """A name for each listener; those without one get SMTP, SMTP2 and so on."""
        taken: dict[str, int] = {}
        for listener in self._listeners:
            name = listener.get(sub.NAME)
            if name and name in taken:
                self._refuse(
                    listener.line, f'two listeners are called "{name}", the other in line {taken[name]}: rename one'
                )
            taken[name] = listener.line
        free = (
            name for number in range(1, len(self._listeners) + len(taken) + 1) if (name := _numbered(number)) not in taken
        )
        return [listener.get(sub.NAME) or next(free) for listener in self._listeners]

    def _settle_ports(self) -> None:
        """TLS from the start has a default port of its own (RFC 8314 3.3)."""
        for listener in self._listeners:
            ssl = listener.all(sub.SSL)
            if ssl and not ssl[0].get(sub.LATENT) and not listener.is_written(sub.PORT):
                listener.values[sub.PORT.key] = Value(sub.PORT, SUBMISSIONS_PORT, 0)

    def _check_ports(self) -> None:
        seen: list[Given] = []
        for listener in self._listeners:
            interface, port = listener.get(sub.INTERFACE), listener.get(sub.PORT)
            for other in seen:
                if (
                    port
                    and other.get(sub.PORT) == port
                    and (not interface or not other.get(sub.INTERFACE) or interface == other.get(sub.INTERFACE))
                ):
                    self._refuse(
                        listener.line,
                        f"this listener and that of line {other.line} share port {port}: write another port or interface",
                    )
            seen.append(listener)

    def _listener(self, listener: Given, name: str, maxconnections: int) -> ListenerSettings:
        server = listener.one(sub.SERVER)
        return ListenerSettings(
            name=name,
            interface=listener.get(sub.INTERFACE),
            port=listener.get(sub.PORT),
            ssl=self._ssl(listener, name),
            server=ServerSettings(
                relay_clients=Networks.of(server.get(sub.RELAY_CLIENTS)),
                maxmsgsize=server.get(sub.MAXMSGSIZE),
                maxrecips=server.get(sub.MAXRECIPS),
                maxmessages=server.get(sub.MAXMESSAGES),
                maxpeerconnections=server.get(sub.MAXPEERCONNECTIONS),
                maxconnections=maxconnections,
                maxbadreqs=server.get(sub.MAXBADREQS),
                timeout_s=server.get(sub.TIMEOUT),
            ),
        )

    def _ssl(self, listener: Given, name: str) -> SslSettings | None:
        block = next(iter(listener.all(sub.SSL)), None)
        if block is None:
            return None
        setting = sub.CERTIFICATE
        try:
            chain = read_chain(block.get(setting), self._files, block.line_of(setting))
            setting = sub.PRIVATEKEY
            key = read_key(block.get(setting), self._files, block.line_of(setting))
            check_pair(chain, key, self._files)
        except UnitError as error:
            self._refuse(block.line_of(setting), f"{setting.title}: {error}")
        self._contents[id(block), sub.CERTIFICATE.key] = digest_of((chain.pem,))
        self._contents[id(block), sub.PRIVATEKEY.key] = digest_of((key.pem,))
        if key.is_readable_by_all:
            self._notes.append(f"the private key {block.get(setting)} can be read by everybody: chmod o= it")
        path, line = block.get(sub.CERTIFICATE), block.line_of(sub.CERTIFICATE)
        self._certificates.append(NamedCertificate(path, f"listener {name}", line, chain.begins_at, chain.ends_at))
        return SslSettings(
            latent=block.get(sub.LATENT),
            mandatory=block.get(sub.MANDATORY),
            certificate_path=path,
            privatekey_path=block.get(sub.PRIVATEKEY),
            chain_pem=chain.pem,
            key_pem=key.pem,
        )


def _numbered(number: int) -> str:
    return "SMTP" if number == 1 else f"SMTP{number}"
