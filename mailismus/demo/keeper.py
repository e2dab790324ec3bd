"""The keeper: the process that has a playground, from its begin until nothing of it is left.

    python -m mailismus.demo.keeper --rate 2

*Rules*: it makes the directory, the mail hosts, the name server and the server, and prints one line about them. It ends when
its standard input is closed, however the command has ended that held the other end; by SIGTERM; or when the server ends. It
is in a session of its own: keys and the end of a terminal do not reach it. At its end the server is stopped and waited for,
and the directory is removed. If it is killed, the server ends too, for it holds the end of a pipe as well; the directory
stays. What breaks is told in its one line, whatever it is: the command waits for that.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import TextIO, cast

from twisted.internet.abstract import FileDescriptor
from twisted.internet.address import IPv4Address
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort, IReactorCore, IReactorFDSet, IReactorTCP, IReactorTime, IReactorUDP
from twisted.internet.task import LoopingCall
from twisted.python.failure import Failure

from mailismus.demo.manners import HostManners, Manner
from mailismus.demo.names import DemoNames
from mailismus.demo.playground import (
    ADDRESSES,
    CONFIG_FILE,
    LOG_FILE,
    LOOPBACK,
    MAXTIME,
    configuration,
    mail_hosts,
)
from mailismus.demo.sender import LetterSender
from mailismus.demo.sink import SinkHost

PREFIX = "mailismus-demo-"
TRIES = 20
"""Ports that are tried until one is free at all addresses."""
START_S = 30.0
STOP_S = 15.0
LOOK_S = 0.1
MAX_DATAGRAM = 8192
_RUN_SERVER = """\
import os, signal, threading
threading.Thread(target=lambda: (os.read(0, 1), os.kill(os.getpid(), signal.SIGTERM)), daemon=True).start()
from twisted.scripts.twistd import run
run()
"""
_READY = re.compile(r" ready: .*:([0-9]+)\n").search
_PAGE = re.compile(r" The web page is at (http://\S+)\n").search


class KeeperReactor(IReactorCore, IReactorFDSet, IReactorTCP, IReactorTime, IReactorUDP):
    """The part of the reactor that is used."""


class MailHosts:
    """The mail hosts that answer, all at one port, and the name server."""

    def __init__(self, reactor: KeeperReactor) -> None:
        self._reactor = reactor
        self._ports: list[IListeningPort] = []
        self.name_port = 0
        self.mail_port = 0

    def listen(self) -> None:
        """Listen. Raises `CannotListenError`."""
        names = self._reactor.listenUDP(0, DemoNames(mail_hosts()), LOOPBACK, MAX_DATAGRAM)
        self.name_port = _port_of(names)
        for left in reversed(range(TRIES)):
            try:
                self._listen_at_one_port()
            except CannotListenError:
                self.close()
                if not left:
                    raise
            else:
                return

    def _listen_at_one_port(self) -> None:
        self.mail_port = 0
        for manner, address in ADDRESSES.items():
            if manner is not Manner.DEAD:
                factory = SinkHost(HostManners(manner), self._reactor, time.monotonic)
                # Twisted wants a private type of factory.
                port = self._reactor.listenTCP(self.mail_port, factory, interface=address)  # type: ignore[arg-type]
                self._ports.append(port)
                self.mail_port = _port_of(port)

    def close(self) -> None:
        """Listen no more."""
        for port in self._ports:
            port.stopListening()
        self._ports.clear()


def _port_of(port: IListeningPort) -> int:
    host = port.getHost()
    assert isinstance(host, IPv4Address)
    return host.port


class _Input(FileDescriptor):
    """Standard input: its end is told."""

    def __init__(self, reactor: KeeperReactor, over: Callable[[], None]) -> None:
        super().__init__(reactor)
        self._over = over

    def fileno(self) -> int:
        return 0

    def doRead(self) -> None:
        if not os.read(0, 4096):
            self.stopReading()
            self._over()

    def connectionLost(self, reason: Failure) -> None:
        """As the end of it: a poller tells a closed pipe so."""
        super().connectionLost(reason)
        self._over()


class Keeper:
    """One playground in this directory. `rate`: letters a second."""

    def __init__(self, reactor: KeeperReactor, directory: str, rate: float, out: TextIO, maxtime: str = MAXTIME) -> None:
        self._reactor, self._directory, self._rate, self._out = reactor, directory, rate, out
        self._maxtime = maxtime
        self._hosts = MailHosts(reactor)
        self._server: subprocess.Popen[bytes] | None = None
        self._sender: LetterSender | None = None
        self._deadline = 0.0
        self._looking: LoopingCall | None = None
        self._is_over = False
        self.status = os.EX_OK

    def run(self) -> int:
        """Have the playground until it is over. Return the exit code."""
        reader = _Input(self._reactor, self.end)
        self._reactor.callWhenRunning(reader.startReading)
        self._reactor.callWhenRunning(self._begin)
        self._reactor.run()  # its signals are taken: SIGTERM ends it
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is at its end
        self._stop_server()
        return self.status

    def end(self) -> None:
        """It is over. Harmless when repeated."""
        if self._is_over:
            return
        self._is_over = True
        if self._sender is not None:
            self._sender.stop()
        self._hosts.close()
        if self._looking is not None and self._looking.running:
            self._looking.stop()
        self._reactor.stop()

    def _begin(self) -> None:
        try:
            self._hosts.listen()
        except CannotListenError as error:
            self._fail(f"the mail hosts can't listen: {error}")
            return
        try:
            self._start_server()
        except (OSError, ValueError) as error:  # ValueError: a name that is no UTF-8
            self._fail(f"the server can't be started in {self._directory!a}: {error}")
            return
        self._deadline = time.monotonic() + START_S
        self._looking = LoopingCall(self._look)
        self._looking.start(LOOK_S).addErrback(lambda failure: self._fail(f"it broke: {failure.getErrorMessage()}"))

    def _start_server(self) -> None:
        config = os.path.join(self._directory, CONFIG_FILE)
        with open(config, "w", encoding="utf-8") as file:
            ports = 0, self._hosts.mail_port, self._hosts.name_port
            file.write(configuration(self._directory, *ports, self._maxtime))
        command = [sys.executable, "-c", _RUN_SERVER, "-n", "--pidfile=", "mailismus", "--config", config]
        with open(self._log, "wb") as log:
            self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)

    @property
    def _log(self) -> str:
        return os.path.join(self._directory, LOG_FILE)

    def _look(self) -> None:
        """See how the server is."""
        assert self._server is not None
        if self._server.poll() is not None:
            self._fail(f"the server has ended: {self._last_line()}")
        elif self._sender is None:
            port, page = self._find_ready()
            if port:
                self._sender = LetterSender(port, self._rate)
                self._sender.start()
                self._say({"directory": self._directory, "port": port, "page": page})
            elif time.monotonic() > self._deadline:
                self._fail(f"the server has not started within {START_S:g} s: {self._last_line()}")

    def _find_ready(self) -> tuple[int, str]:
        """The port of the server, 0 until it is ready, and the address of its web page."""
        page = ""
        with open(self._log, encoding="utf-8", errors="replace") as log:
            for line in log:
                if found := _PAGE(line):
                    page = found[1]
                if found := _READY(line):
                    return int(found[1]), page
        return 0, ""

    def _last_line(self) -> str:
        with open(self._log, encoding="utf-8", errors="replace") as log:
            return next(reversed([line.strip() for line in log if line.strip()]), "it said nothing")

    def _fail(self, why: str) -> None:
        self._say({"error": why})
        self.status = os.EX_UNAVAILABLE
        self.end()

    def _say(self, told: dict[str, object]) -> None:
        try:
            print(json.dumps(told), file=self._out, flush=True)
        except OSError:  # the command has gone: the end of standard input follows
            pass

    def _stop_server(self) -> None:
        if self._server is None:
            return
        self._server.terminate()
        try:
            self._server.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()


def main() -> int:
    """Have a playground. Return the exit code."""
    parser = argparse.ArgumentParser(prog="mailismus.demo.keeper")
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--maxtime", default=MAXTIME, help="the server's <retry_maxtime>")
    arguments = parser.parse_args()
    from twisted.internet import reactor as installed

    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    reactor = cast(KeeperReactor, installed)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(os.EX_UNAVAILABLE))  # until the reactor takes it
    directory = tempfile.mkdtemp(prefix=PREFIX)
    try:
        return Keeper(reactor, directory, arguments.rate, sys.stdout, arguments.maxtime).run()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main())
