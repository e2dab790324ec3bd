"""Answers, and the header fields that every answer has (pure).

*Rules*: a page may load its own style, script and icon, send its form to this server, and nothing else: no inline code, no
frame, no other site. Even markup that came through unescaped would have nothing to run.
"""

from __future__ import annotations

import attrs

HTML = b"text/html; charset=utf-8"
TEXT = b"text/plain; charset=utf-8"

POLICY = "; ".join(
    (
        *("default-src 'none'", "style-src 'self'", "script-src 'self'", "connect-src 'self'", "img-src 'self'"),
        *("form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"),
        *("require-trusted-types-for 'script'", "trusted-types 'none'"),
    )
).encode("ascii")

FIELDS = (
    (b"Content-Security-Policy", POLICY),
    (b"X-Content-Type-Options", b"nosniff"),
    (b"X-Frame-Options", b"DENY"),
    (b"Referrer-Policy", b"no-referrer"),
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (b"Cross-Origin-Embedder-Policy", b"require-corp"),
    (b"Cross-Origin-Resource-Policy", b"same-origin"),
    (b"Permissions-Policy", b"camera=(), clipboard-read=(), display-capture=(), geolocation=(), microphone=(), usb=()"),
    (b"X-DNS-Prefetch-Control", b"off"),
    (b"X-Robots-Tag", b"noindex, nofollow"),
    (b"Cache-Control", b"no-store"),
)
"""Fields of every answer."""


@attrs.frozen
class WebAnswer:
    """An answer. `more`: fields beside those of every answer."""

    status: int
    content: bytes
    content_type: bytes = HTML
    more: tuple[tuple[bytes, bytes], ...] = ()


def refusal(status: int, text: str, *more: tuple[bytes, bytes]) -> WebAnswer:
    """An answer in a sentence."""
    return WebAnswer(status, text.encode("utf-8", "backslashreplace") + b"\n", TEXT, more)
