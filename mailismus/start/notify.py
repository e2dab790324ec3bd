"""Notification of the service manager: systemd's protocol, a datagram of `NAME=VALUE` lines to a Unix socket.

*Rules*: without `NOTIFY_SOCKET` nothing is sent. A socket that can't be reached never affects the server. The reactor's
timers ping the watchdog, at a third of its period: a reactor that hangs sends no ping.

Source: sd_notify(3), sd_watchdog_enabled(3).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

PINGS_PER_PERIOD = 3
MIN_PERIOD_S = 0.1


class Notifier:
    """Reports the server's state to the service manager. `status`: returns one line for people, called at each ping."""

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
        """The watchdog's period in seconds; None: this process has no watchdog."""
        environment = self._environment
        usec = environment.get("WATCHDOG_USEC", "")
        if not usec.isascii() or not usec.isdigit() or not int(usec):
            return None
        if environment.get("WATCHDOG_PID", str(self._pid())) != str(self._pid()):
            return None
        return max(MIN_PERIOD_S, int(usec) / 1e6)

    def ready(self, status: str) -> None:
        """Report that mail is accepted, and begin to ping the watchdog."""
        self._send("READY=1", f"STATUS={status}", f"MAINPID={self._pid()}")
        if self._address is not None and self.period_s is not None and self._timer is None:
            self._ping_watchdog()

    def reloading(self, monotonic_s: float) -> None:
        """Report that the configuration is being reloaded; `ready` reports its end."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={int(monotonic_s * 1e6)}")

    def stopping(self) -> None:
        """Report the stop, which may take `stop_timeout`; the pings go on."""
        self._send("STOPPING=1", "STATUS=stopping")

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def _ping_watchdog(self) -> None:
        period_s = self.period_s
        if period_s is None:
            return
        status = self._status()
        self._send("WATCHDOG=1", *([f"STATUS={status}"] if status else []))
        self._timer = self._reactor.callLater(period_s / PINGS_PER_PERIOD, self._ping_watchdog)

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
    """The address of a path, or of `@name` in the abstract namespace; None: there is no service manager."""
    if text.startswith("/"):
        return os.fsencode(text)
    if text.startswith("@") and len(text) > 1:
        return b"\0" + os.fsencode(text[1:])
    return None
