"""Assembling, part 5: files with secrets, and `<auth>` of relays.

*Rules*: every mechanism has its secret, and every secret its mechanism. A file is read here to refuse at the start what
could not be used later; nothing of it is kept but which file it was. No message quotes a secret. For commands that use no
secret a file that can't be used is a complaint: whoever looks at the queue may be somebody who may not read it.
"""

from __future__ import annotations

from typing import NoReturn

import attrs

from mailismus.config.read.check import Given
from mailismus.config.read.effective import Key
from mailismus.config.read.files import Files
from mailismus.config.table import auth
from mailismus.config.table.words import Setting
from mailismus.config.values.auth import OBSOLETE_TYPES, PASSWORD_TYPES, TOKEN_TYPES, AuthSettings, SecretSource
from mailismus.errors import ConfigError, SecretError
from mailismus.mail.saslprep import Unfit, prepare


class AuthReader:
    """Reads the `<auth>` and the secrets of one configuration. `contents`: digests of files, which are added to."""

    def __init__(self, file: str, files: Files, contents: dict[Key, bytes]) -> None:
        self._file, self._files, self._contents = file, files, contents

    def read(self, block: Given | None) -> AuthSettings | None:
        """The credentials of a relay; None: there is no `<auth>`. Raises `ConfigError`."""
        if block is None:
            return None
        types, has_password, has_token = self._types(block)
        needs_prepared = any(name.startswith("SCRAM") for name in types)
        if needs_prepared:
            self._check_username(block)
        return AuthSettings(
            types=types,
            username=block.get(auth.USERNAME),
            password=self.source(block, auth.PASSWORDFILE, needs_prepared=needs_prepared) if has_password else None,
            token=self.source(block, auth.TOKENFILE, is_token=True) if has_token else None,
        )

    def _types(self, block: Given) -> tuple[tuple[str, ...], bool, bool]:
        """The mechanisms, and whether there are a password and a token for them."""
        has_password, has_token = bool(block.get(auth.PASSWORDFILE)), bool(block.get(auth.TOKENFILE))
        if not has_password and not has_token:
            self._refuse(block.line, "<auth> has no secret: write <passwordfile>, or <tokenfile> for XOAUTH2")
        types = block.get(auth.AUTH_TYPES)
        if not types:
            types = (*(TOKEN_TYPES if has_token else ()), *(PASSWORD_TYPES if has_password else ()))
            value = block.values[auth.AUTH_TYPES.key]
            block.values[auth.AUTH_TYPES.key] = attrs.evolve(
                value, value=types
            )  # what is in force, for the effective values
        for name in types:
            if types.count(name) > 1:
                self._refuse(block.line, f"attribute types: {name} stands there twice: remove one")
        secrets = (
            (auth.PASSWORDFILE, has_password, (*PASSWORD_TYPES, *OBSOLETE_TYPES)),
            (auth.TOKENFILE, has_token, TOKEN_TYPES),
        )
        for setting, has_file, mechanisms in secrets:
            for name in types:
                if name in mechanisms and not has_file:
                    self._refuse(block.line, f"{name} needs {setting.title}: write it, or remove {name} from types")
        for setting, has_file, mechanisms in secrets:
            if has_file and not set(types) & set(mechanisms):
                text = f"{setting.title}: no mechanism in types uses it: remove it, or add {mechanisms[0]}"
                self._refuse(block.line_of(setting), text)
        return types, has_password, has_token

    def _check_username(self, block: Given) -> None:
        try:
            prepare(block.get(auth.USERNAME).encode("utf-8"))
        except Unfit as error:
            self._refuse(block.line_of(auth.USERNAME), f"<username> can't be used for SCRAM: {error}: write another one")

    def source(
        self, block: Given, setting: Setting[str], *, is_token: bool = False, needs_prepared: bool = False
    ) -> SecretSource:
        """The file with a secret that a setting names, after it was read once. Raises `ConfigError`."""
        path, line = block.get(setting), block.line_of(setting)
        try:
            content = self._files.read_secret(path, is_token, line)
        except SecretError as error:
            text = f"{setting.title}: {path} can't be used: {error}"
            if error.is_missing:  # the value may be the secret itself, written here by mistake
                text = f"{setting.title}: there is no such file: write it, mode 600; the value is its path"
            if self._files.needs_secrets:
                self._refuse(line, text)
            self._files.complain(line, text)
            return SecretSource(path, b"")
        try:
            if needs_prepared:
                prepare(content.secret)
        except Unfit as error:
            self._refuse(line, f"{setting.title}: {path} can't be used for SCRAM: {error}: choose another password")
        finally:
            content.secret.wipe()
        version = self._contents[id(block), setting.key] = bytes(content.version)
        return SecretSource(path, version)

    def _refuse(self, line: int, text: str) -> NoReturn:
        raise ConfigError(self._file, line, text)
