"""Requests to the keeper, and its answers: a JSON object on one line each, over a Unix socket."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

PATIENCE_S = 240.0


class ControlError(Exception):
    """The keeper could not be asked, or did not do it, and why."""


def ask(path: Path, request: dict[str, Any]) -> dict[str, Any]:
    """The keeper's answer. Raises `ControlError`."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        try:
            connection.connect(str(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as answers:
                line = answers.readline()
        except OSError as error:
            raise ControlError(f"{path}: {error}") from error
    if not line:
        raise ControlError("the keeper ended without an answer")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise ControlError(answer["error"])
    return answer
