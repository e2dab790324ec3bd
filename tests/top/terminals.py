"""A terminal for tests: a pty, the program on it, and the screen that it has drawn, as xterm would show it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from mailismus.top.cells import width_of

PATIENCE_S = 60.0
_TOKEN = re.compile(
    r"\x1b\[(?P<place>[0-9;]*)H|\x1b\[(?P<erase>[0-2]?)(?P<how>[JK])|\x1b\[(?P<by>[0-9]*)C"
    r"|\x1b\[[?>=0-9;]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>78M]|(?P<other>[\r\n\x08\x0e\x0f\x07])|(?P<text>[^\x1b])"
)


class ScreenTerminal:
    """A program on a pty of this size. Whatever it writes that no line of ours may have is in `unknown`."""

    def __init__(
        self, command: Sequence[str], width: int, height: int, environment: Mapping[str, str] | None = None
    ) -> None:
        self.width, self.height = width, height
        self.output = ""
        self._master, slave = pty.openpty()
        self._set_size()
        before = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(environment or {})}
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=before, start_new_session=True, close_fds=True
        )
        self._saved = termios.tcgetattr(slave)
        self._slave = slave

    def __enter__(self) -> ScreenTerminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for fd in (self._master, self._slave):
            os.close(fd)

    def _set_size(self) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", self.height, self.width, 0, 0))

    def resize(self, width: int, height: int) -> None:
        """Give the terminal another size; the kernel tells the program."""
        self.width, self.height = width, height
        self.output = ""
        self._set_size()
        self.process.send_signal(28)  # SIGWINCH: the pty is not its controlling terminal

    def type(self, keys: str) -> None:
        """Type these."""
        os.write(self._master, keys.encode())

    def read(self, timeout_s: float = 0.05) -> None:
        """Read what has been written."""
        while select.select([self._master], [], [], timeout_s)[0]:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            self.output += data.decode("utf-8", "replace")
            timeout_s = 0.0

    def await_text(self, text: str) -> str:
        """The screen, as soon as it shows this."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.screen():
            assert time.monotonic() < deadline, f"no {text!r} on:\n{self.screen()}\nafter: {self.output[-2000:]!r}"
            self.read()
        return self.screen()

    def wait(self) -> int:
        """The exit code of the program."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline
            self.read()
        self.read()
        return self.process.returncode

    @property
    def is_as_before(self) -> bool:
        """Whether the terminal has the modes that it had before the program came."""
        return termios.tcgetattr(self._slave) == self._saved

    def screen(self) -> str:
        """What the screen shows."""
        cells = [[" "] * self.width for _ in range(self.height)]
        row = column = 0
        for found in _TOKEN.finditer(self.output):
            if found["place"] is not None:
                numbers = [int(number or 1) for number in (found["place"] or "1;1").split(";")]
                row, column = min(numbers[0], self.height) - 1, min(numbers[-1], self.width) - 1
            elif found["how"] == "J":
                cells = [[" "] * self.width for _ in range(self.height)]
            elif found["how"] == "K":
                cells[row][column:] = [" "] * (self.width - column)
            elif found["by"] is not None:
                column = min(column + int(found["by"] or 1), self.width - 1)
            elif found["other"] is not None:
                row, column = _moved(found["other"], row, column, self.height)
            elif found["text"] is not None:
                if column >= self.width:
                    row, column = min(row + 1, self.height - 1), 0
                width = width_of(found["text"])
                cells[row][column : column + width] = [found["text"], *[""] * (width - 1)]
                column += width
        return "\n".join("".join(line).rstrip() for line in cells)


def _moved(character: str, row: int, column: int, height: int) -> tuple[int, int]:
    """Where the cursor is behind a control character."""
    if character == "\r":
        return row, 0
    if character == "\n":
        return min(row + 1, height - 1), column
    return (row, max(0, column - 1)) if character == "\x08" else (row, column)
