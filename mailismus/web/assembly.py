"""The page of a configuration: made only where `<web>` is written. Without it the server imports nothing else of this
package, nor the libraries that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mailismus.config.values.settings import Settings

if TYPE_CHECKING:
    from mailismus.web.task import WebPort


def web_port_of(settings: Settings) -> WebPort | None:
    """What will listen for browsers; None: `<web>` is not written."""
    if settings.admin.web is None:
        return None
    from mailismus.web.task import WebPort  # here, where a start can be refused

    return WebPort(settings.admin.web, settings.application.announcehost.decode("ascii", "replace"))
