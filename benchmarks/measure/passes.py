"""What one look at content costs, in instructions a byte: a small program of known operations under callgrind.

A server's instructions a byte in the same C function, divided by these, are its passes over the content. Rules: for each
operation the function that used most instructions stands for it; text of lines, as smtp-source sends it. How much
a pass costs is different for each compiler, processor and version of Python: it is measured each time.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from benchmarks.measure.instructions import Callgrind, command
from tests.support.processes import TrialError

CONTENT = (b"X" * 78 + b"\r\n") * (65536 // 80)
TIMES = 16
_EXPRESSION = re.compile(rb"\n\.")
OPERATIONS: Mapping[str, Callable[[bytes], object]] = {
    "zlib.crc32": lambda data: zlib.crc32(data),
    "bytes.translate": lambda data: data.translate(None, b"\r\n"),
    "bytes.splitlines": lambda data: data.splitlines(),
    "bytes.isascii": lambda data: data.isascii(),
    "bytes.find of 1": lambda data: data.find(b"."),
    "bytes.rfind of 1": lambda data: data.rfind(b"."),
    "bytes.count of 1": lambda data: data.count(b"."),
    "bytes.find of 2": lambda data: data.find(b"\r."),
    "bytes.split of 1": lambda data: data.split(b"\n"),
    "bytes.split of 2": lambda data: data.split(b"\r\n"),
    "bytes.lower": lambda data: data.lower(),
    "re.search": lambda data: _EXPRESSION.search(data),
}
"""The first that has a function for its own gives the cost of it."""


@attrs.frozen
class Pass:
    """An operation and what one look at a byte costs in its function."""

    operation: str
    per_byte: float


def calibrate(directory: Path) -> dict[str, Pass]:
    """By C function. Raises: TrialError."""
    file = directory / "calibration"
    argv = [*command(file), sys.executable, "-m", "benchmarks.measure.passes"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            found: dict[str, Pass] = {}
            tool: Callgrind | None = None
            for name in ("", *OPERATIONS):
                process.stdin.write(name + "\n")
                process.stdin.flush()
                if process.stdout.readline().strip() != "done":
                    raise TrialError("the calibration ended early")
                tool = tool or Callgrind(file, process.pid)
                dump = tool.dump()
                if name:
                    function, cost = max(dump.own.items(), key=lambda item: item[1])
                    found.setdefault(function, Pass(name, cost / len(CONTENT) / TIMES))
            return found
        finally:
            process.kill()


def passes(per_byte: Mapping[str, float], costs: Mapping[str, Pass]) -> dict[str, float]:
    """Passes over the content by C function, from its instructions a byte."""
    return {
        function: per_byte.get(function, 0.0) / cost.per_byte for function, cost in costs.items() if function in per_byte
    }


def main(names: Sequence[str] | None = None) -> None:
    """Carry out one operation for each line of the input."""
    for line in names or sys.stdin:
        operation = OPERATIONS.get(line.strip())
        if operation is not None:
            for _ in range(TIMES):
                operation(CONTENT)
        print("done", flush=True)


if __name__ == "__main__":
    main()
