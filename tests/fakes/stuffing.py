"""Dot-stuffing said plainly, line by line (RFC 5321 4.5.2)."""

from __future__ import annotations


def stuff(message: bytes) -> bytes:
    """A message as it goes over the wire."""
    return b"\r\n".join(b"." + line if line.startswith(b".") else line for line in message.split(b"\r\n"))


def unstuff(content: bytes) -> bytes:
    """The message that came over the wire."""
    return b"\r\n".join(line.removeprefix(b".") for line in content.split(b"\r\n"))


def stuffed_dots(content: bytes) -> int:
    """How many bytes of a content are no part of its message."""
    return len(content) - len(unstuff(content))
