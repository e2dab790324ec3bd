"""Assembling, part 4: `<tls>` towards other servers, with the files that it names.

*Rules*: what `<relay>` or `<destination>` does not say is taken from `<client>`; names are not, nor a level below `encrypt`
for TLS from the start. What would have no effect is refused. Every error is at the line of its `<tls>`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

import attrs

from mailismus.config.read.certificates import check_pair, read_chain, read_key, read_trust
from mailismus.config.read.check import Given
from mailismus.config.read.effective import Key
from mailismus.config.read.files import Files
from mailismus.config.read.lists import digest_of
from mailismus.config.table import tls
from mailismus.config.table.words import Setting
from mailismus.config.values.certificates import NamedCertificate
from mailismus.config.values.tls import ClientCertificate, TlsLevel, TlsSettings, TlsVersion, TrustStore
from mailismus.config.values.units import UnitError
from mailismus.errors import ConfigError

T = TypeVar("T")

BUILT_IN = TlsSettings(TlsLevel.OPPORTUNISTIC)
"""What `<client>` takes over where it says nothing."""


class TlsReader:
    """Reads the `<tls>` of one configuration. `notes`: sentences for the log; `contents`: digests of files by setting;
    `certificates`: those that it names; all are added to. `client`: the `<tls>` of `<client>`. The constructor and `read`
    raise `ConfigError`."""

    def __init__(
        self,
        file: str,
        files: Files,
        notes: list[str],
        contents: dict[Key, bytes],
        certificates: list[NamedCertificate],
        client: Given,
    ) -> None:
        self._file, self._files = file, files
        self._notes, self._contents, self._certificates = notes, contents, certificates
        self.client = self._assemble(client, BUILT_IN, tls.CLIENT_LEVEL)

    def read(self, block: Given | None, of_relay: bool = False, auth_line: int = 0) -> TlsSettings | None:
        """What `<tls>` says in a relay or destination; None: there is none. `auth_line`: of the `<auth>` of the relay, which
        demands `verify` where no level is written; 0: there is none."""
        base = self.client
        if auth_line:
            base = attrs.evolve(base, level=TlsLevel.VERIFY, demanded_by=f"<auth> in line {auth_line}", names=())
        if block is None:
            return base if auth_line else None
        found = self._assemble(block, base, tls.LEVEL, is_immediate=of_relay and not block.get(tls.LATENT))
        if auth_line and not found.level.is_demanded:
            self._refuse(
                block,
                f'level is "{found.level.value}", and <auth> in line {auth_line} would send a secret without TLS: remove '
                "the level, which is verify then, or write encrypt",
            )
        return found

    def _assemble(self, block: Given, base: TlsSettings, at: Setting[str], is_immediate: bool = False) -> TlsSettings:
        level, demanded_by = base.level, base.demanded_by
        if block.is_written(at):
            level, demanded_by = TlsLevel(block.get(at)), _demand(block)
        if is_immediate and not level.is_demanded:
            if block.is_written(at):
                self._refuse(block, f'level is "{level.value}", and latent "N", TLS from the start: write encrypt or verify')
            level, demanded_by = TlsLevel.ENCRYPT, _demand(block)
        if at is tls.LEVEL:  # what stands in <client> is for others too
            self._refuse_needless(block, level)
        minversion = block.get(tls.MINVERSION)
        return TlsSettings(
            level=level,
            demanded_by=demanded_by,
            names=block.get(tls.NAME),
            minversion=TlsVersion(minversion) if minversion else base.minversion,
            trust=self._trust(block) or base.trust,
            certificate=self._certificate(block) or base.certificate,
            is_immediate=is_immediate,
        )

    def _refuse_needless(self, block: Given, level: TlsLevel) -> None:
        """Refuse what has no effect at this level."""
        if level is TlsLevel.NONE:
            without = [tls.MINVERSION, tls.CAFILE, tls.NAME, tls.CERTIFICATE]
        elif level is TlsLevel.VERIFY:
            without = []
        else:
            without = [tls.CAFILE, tls.NAME]
        for setting in without:
            if block.is_written(setting):
                self._refuse(
                    block,
                    f'{setting.name} has no effect at level "{level.value}": remove it, or write level="verify"',
                )

    def _trust(self, block: Given) -> TrustStore | None:
        path = block.get(tls.CAFILE)
        if not path:
            return None
        trust = self._of_file(block, tls.CAFILE, lambda: read_trust(path, self._files, block.line))
        self._contents[id(block), tls.CAFILE.key] = digest_of((trust.pem,))
        use = f"cafile of {_demand(block)}"
        self._certificates.append(NamedCertificate(path, use, block.line, 0.0, trust.ends_at))
        return TrustStore(path, trust.ends_at, trust.pem)

    def _certificate(self, block: Given) -> ClientCertificate | None:
        path = block.get(tls.CERTIFICATE)
        if not path:
            if block.get(tls.PRIVATEKEY):
                self._refuse(block, "there is a privatekey, but no certificate: write both, or neither")
            return None
        key_path = block.get(tls.PRIVATEKEY) or path
        files, line = self._files, block.line
        chain = self._of_file(block, tls.CERTIFICATE, lambda: read_chain(path, files, line))
        key = self._of_file(block, tls.PRIVATEKEY, lambda: read_key(key_path, files, line))
        self._of_file(block, tls.PRIVATEKEY, lambda: check_pair(chain, key, files))
        self._contents[id(block), tls.CERTIFICATE.key] = digest_of((chain.pem,))
        self._contents[id(block), tls.PRIVATEKEY.key] = digest_of((key.pem,))
        if key.is_readable_by_all:
            self._notes.append(f"the private key {key_path} can be read by everybody: chmod o= it")
        self._certificates.append(NamedCertificate(path, _demand(block), line, chain.begins_at, chain.ends_at))
        return ClientCertificate(path, key_path, chain.begins_at, chain.ends_at, chain.pem, key.pem)

    def _of_file(self, block: Given, setting: Setting[str], read: Callable[[], T]) -> T:
        try:
            return read()
        except UnitError as error:
            self._refuse(block, f"{setting.name}: {error}")

    def _refuse(self, block: Given, text: str) -> NoReturn:
        raise ConfigError(self._file, block.line, f"<tls>: {text}")


def _demand(block: Given) -> str:
    return f"<tls> in line {block.line}"
