"""Chromium without a screen, driven over a pipe: what a page looks like, what it runs, and what it loads.

*Rules*: one page at a time. Each request of the page, each dialog, each message of its console and each exception is noted.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

PATIENCE_S = 60.0
_OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe"),
)
_FROM_US, _TO_US = 3, 4
"""Descriptors that Chromium reads from and writes to."""

Told = dict[str, Any]
"""An object of the protocol; Any: as JSON has it."""


def find_chromium() -> str | None:
    """The program, if this machine has it."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Chromium:
    """A browser with one page. Use as a context manager."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="mailismus-chromium-")
        self._number = 0
        self._session = ""
        self._left = b""
        self.requests: list[str] = []
        """Addresses that the page asked for since it was opened, with those that were refused."""
        self.alarms: list[str] = []
        """Dialogs, messages of the console, refusals of the policy and exceptions since then."""
        to_them, self._out = os.pipe()
        self._in, from_them = os.pipe()
        high = [os.dup2(fd, fd + 20, inheritable=False) for fd in (to_them, from_them)]
        places = [(os.POSIX_SPAWN_DUP2, high[0], _FROM_US), (os.POSIX_SPAWN_DUP2, high[1], _TO_US)]
        quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        arguments = [program, *_OPTIONS, f"--user-data-dir={self._profile}", "about:blank"]
        self._pid = os.posix_spawn(program, arguments, os.environ, file_actions=[*quiet, *places], setpgroup=0)
        for fd in (to_them, from_them, *high):
            os.close(fd)

    def __enter__(self) -> Chromium:
        try:
            targets = self._ask("Target.getTargets")["targetInfos"]
            target = next(one["targetId"] for one in targets if one["type"] == "page")
            self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Network", "Runtime", "Log"):
                self._ask(f"{domain}.enable")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def _end(self) -> None:
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        for fd in (self._out, self._in):
            os.close(fd)
        shutil.rmtree(self._profile, ignore_errors=True)

    def look(self, width: int, height: int, *, is_dark: bool = False, has_script: bool = True) -> None:
        """Be a window of this size from now on."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])
        self._ask("Emulation.setScriptExecutionDisabled", value=not has_script)

    def open(self, address: str) -> None:
        """Go to a page, and wait until it has been loaded."""
        self.requests.clear()
        self.alarms.clear()
        self._is_loaded = False
        self._ask("Page.navigate", url=address)
        self._wait(lambda: self._is_loaded)

    def value(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        found = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key, as `Tab`."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27}[key]
        for kind in ("rawKeyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def let_pass(self, seconds: float) -> None:
        """Note what the page does for so long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._read(left)

    def picture(self, file: Path, *, is_whole: bool = True) -> None:
        """Write what the window shows, or the whole page, as PNG."""
        data = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=is_whole)["data"]
        file.write_bytes(base64.b64decode(data))

    def _wait(self, is_so: Any) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, "the browser does not answer"
            self._read(1.0)

    def _ask(self, method: str, **values: object) -> Told:
        self._number += 1
        wanted = {"id": self._number, "method": method, "params": values}
        if self._session:
            wanted["sessionId"] = self._session
        data = json.dumps(wanted).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        self._answer: Told | None = None
        self._wait(lambda: self._answer is not None)
        assert self._answer is not None
        assert "error" not in self._answer, (method, self._answer)
        return dict(self._answer["result"])

    def _read(self, timeout_s: float) -> None:
        if not select.select([self._in], [], [], timeout_s)[0]:
            return
        data = os.read(self._in, 1 << 20)
        assert data, "the browser has ended"
        *whole, self._left = (self._left + data).split(b"\0")
        for one in whole:
            self._take(json.loads(one))

    def _take(self, told: Told) -> None:
        if told.get("id") == self._number:
            self._answer = told
            return
        method, values = told.get("method", ""), told.get("params", {})
        if method == "Page.loadEventFired":
            self._is_loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif method in _ALARMS:
            self.alarms.append(f"{method}: {json.dumps(values)[:500]}")


_ALARMS = frozenset(
    {"Page.javascriptDialogOpening", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}
)
