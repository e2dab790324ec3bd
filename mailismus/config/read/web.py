"""Assembling, part 6: `<web>`.

*Rules*: beyond this host nobody reads without a password.
"""

from __future__ import annotations

from mailismus.config.read.auth import AuthReader
from mailismus.config.read.check import Given
from mailismus.config.table import application as app
from mailismus.config.values.settings import WebSettings
from mailismus.errors import ConfigError


def assemble_web(admin: Given, file: str, secrets: AuthReader) -> WebSettings | None:
    """The settings of `<web>` in `<admin>`; None: it was not written. Raises `ConfigError`."""
    block = next(iter(admin.all(app.WEB)), None)
    if block is None:
        return None
    username = block.get(app.WEB_USERNAME)
    if ":" in username:
        text = f'<username> is "{username}": a browser can send no name with a colon: write another one'
        raise ConfigError(file, block.line_of(app.WEB_USERNAME), text)
    has_password = bool(block.get(app.WEB_PASSWORDFILE))
    found = WebSettings(
        interface=block.get(app.WEB_INTERFACE),
        port=block.get(app.WEB_PORT),
        names=tuple(name.lower() for name in block.get(app.WEB_NAMES)),
        username=username,
        password=secrets.source(block, app.WEB_PASSWORDFILE) if has_password else None,
    )
    if not has_password and not found.is_loopback:
        where = f"interface {found.interface}" if found.interface else "all interfaces"
        text = f"<web> at {where} would show the queue to every host that can connect: write <passwordfile>, or 127.0.0.1"
        raise ConfigError(file, block.line_of(app.WEB_INTERFACE), text)
    return found
