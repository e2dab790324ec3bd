"""Telling the service manager: systemd's notification protocol, a datagram of `NAME=VALUE` lines to a Unix socket.

*Rules*: without `NOTIFY_SOCKET` nothing is sent and nothing is done. A socket that can't be reached never hurts the server.
The watchdog is fed from the reactor's own timers, at a third of the time allowed: a reactor that hangs feeds nobody.

Source: sd_notify(3), sd_watchdog_enabled(3).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

FEEDS_A_PERIOD = 3
LEAST_PERIOD_S = 0.1


class Notifier:
    """Tells the service manager how the server does. `status`: one line for people, asked whenever the watchdog is fed."""

    _log = Logger()

    def __init__(
        self,
        reactor: IReactorTime,
        environment: Mapping[str, str] = os.environ,
        pid: Callable[[], int] = os.getpid,
        status: Callable[[], str] = lambda: "",
    ) -> None:
        self._reactor = reactor
        self._address = _address_of(environment.get("NOTIFY_SOCKET", ""))
        self._environment = environment
        self._pid = pid
        self._status = status
        self._timer: IDelayedCall | None = None
        self._has_failed = False

    @property
    def period_s(self) -> float | None:
        """Seconds within which the watchdog wants to be fed; None: there is none for this process."""
        environment = self._environment
        usec = environment.get("WATCHDOG_USEC", "")
        if not usec.isascii() or not usec.isdigit() or not int(usec):
            return None
        if environment.get("WATCHDOG_PID", str(self._pid())) != str(self._pid()):
            return None
        return max(LEAST_PERIOD_S, int(usec) / 1e6)

    def ready(self, status: str) -> None:
        """Mail is accepted. Feeds the watchdog from now on."""
        self._send("READY=1", f"STATUS={status}", f"MAINPID={self._pid()}")
        if self._address is not None and self.period_s is not None and self._timer is None:
            self._feed()

    def reloading(self, monotonic_s: float) -> None:
        """The configuration is read again; `ready` says when that is over."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={int(monotonic_s * 1e6)}")

    def stopping(self) -> None:
        """No more mail is accepted; a stop may take as long as `stop_timeout`, and the watchdog is fed on."""
        self._send("STOPPING=1", "STATUS=stopping")

    def close(self) -> None:
        """The end: no more timers."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def _feed(self) -> None:
        period_s = self.period_s
        if period_s is None:
            return
        status = self._status()
        self._send("WATCHDOG=1", *([f"STATUS={status}"] if status else []))
        self._timer = self._reactor.callLater(period_s / FEEDS_A_PERIOD, self._feed)

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        text = "\n".join(line.replace("\n", " ") for line in lines)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as out:
                out.sendto(text.encode(), self._address)
        except OSError as error:
            if not self._has_failed:
                self._has_failed = True
                self._log.warn("The service manager can't be told: {error}", error=str(error))
        else:
            self._has_failed = False


def _address_of(text: str) -> bytes | None:
    """A path, or `@name` in the abstract namespace; None: there is nobody to tell."""
    if text.startswith("/"):
        return os.fsencode(text)
    if text.startswith("@") and len(text) > 1:
        return b"\0" + os.fsencode(text[1:])
    return None
