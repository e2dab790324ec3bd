"""Pictures of the web page, to be looked at: light, dark, and as wide as a tablet and a phone.

    python -m tests.web.pictures DIRECTORY                         of scenes of the tests
    python -m tests.web.pictures DIRECTORY ADDRESS [PATH]...       of a server that runs, `http://127.0.0.1:8080`

Prints a line for each: its file, the title, the height, and what the page ran or loaded that it should not.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.web.chromium import Chromium, find_chromium
from tests.web.served import SCENES, served


class Look(NamedTuple):
    """A window."""

    name: str
    width: int
    height: int
    is_dark: bool


LOOKS = (
    Look("light", 1280, 900, False),
    Look("dark", 1280, 900, True),
    Look("tablet", 768, 1024, False),
    Look("phone", 390, 844, False),
    Look("phone-dark", 390, 844, True),
)
PATHS = ("/", "/day", "/queue", "/queue?q=area%3Ddeferred", "/queue?q=x.example", "/message?id=0000000100000001")


def take(browser: Chromium, directory: Path, address: str, paths: Sequence[str], prefix: str = "") -> None:
    """Take pictures of these pages."""
    for look in LOOKS:
        browser.look(look.width, look.height, is_dark=look.is_dark)
        for number, path in enumerate(paths, 1):
            browser.open(address + path)
            file = directory / f"{prefix}{number}-{look.name}.png"
            browser.picture(file)
            title, height = browser.value("[document.title, document.documentElement.scrollHeight]")
            strange = [one for one in browser.requests if not one.startswith(f"{address}/")]
            print(f"{file} {path} {title!r}, {look.width} x {height}", *browser.alarms, *strange)


def main(arguments: Sequence[str]) -> int:
    """Take pictures. Return the exit code."""
    program = find_chromium()
    if program is None or not arguments:
        print(__doc__ if program is not None else "needs Chromium", file=sys.stderr)
        return 64
    directory, *rest = arguments
    Path(directory).mkdir(parents=True, exist_ok=True)
    with Chromium(program) as browser:
        if rest:
            take(browser, Path(directory), rest[0].rstrip("/"), rest[1:] or PATHS)
        for scene in () if rest else SCENES:
            with served(scene) as address:
                take(browser, Path(directory), address, PATHS, f"{scene}-")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
