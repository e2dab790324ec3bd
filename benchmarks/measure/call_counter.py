"""A Python program with its calls counted: `python -P .../call_counter.py DIRECTORY -c CODE|-m MODULE|SCRIPT ARGUMENTS...`.

Each call of a Python function (and each time a generator or coroutine goes on), and each of a function in C that Python
calls, is counted by part of the hot path (`budget.RULES` of the tree on the path), in all threads. At SNAPSHOT
the counts so far are written to DIRECTORY/calls.N, N = 1, 2, ... Rules: exact, but for what a snapshot itself calls. The
program is slowed (about three times). Not counted: types that are called (`int`, `bytes`), and what C calls in C.
Imports nothing of the program, nor what would load it.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

from benchmarks.measure.budget import REST, part_of_frame

SNAPSHOT = signal.SIGRTMIN + 8
"""Asks for the counts so far."""
UNKNOWN = ""


class Parts:
    """The part that each code names; None: its caller decides. Codes are kept: an id must not be used twice."""

    def __init__(self) -> None:
        self.codes: dict[int, CodeType] = {}
        self._parts: dict[int, str | None] = {}

    def of(self, frame: FrameType | None) -> str:
        """The part of the innermost frame that names one."""
        while frame is not None:
            key = id(frame.f_code)
            part = self._parts.get(key, UNKNOWN)
            if part == UNKNOWN:
                self.codes[key] = frame.f_code
                part = self._parts[key] = part_of_frame(self.label(key))
            if part is not None:
                return part
            frame = frame.f_back
        return REST

    def label(self, key: int) -> str:
        """A function's name, file and line, as a profile gives them."""
        code = self.codes[key]
        return f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"


class ThreadCounts:
    """The counts of one thread, which alone adds to them."""

    def __init__(self, parts: Parts) -> None:
        self._part_of = parts.of
        self.python: dict[tuple[int, str], int] = {}
        self.c: dict[tuple[str, str], int] = {}

    def on_event(self, frame: FrameType, event: str, argument: object) -> None:
        """The thread's profile function."""
        if event == "call":
            key = (id(frame.f_code), self._part_of(frame))
            self.python[key] = self.python.get(key, 0) + 1
        elif event == "c_call":
            named = (name_of(argument), self._part_of(frame))
            self.c[named] = self.c.get(named, 0) + 1


def name_of(function: object) -> str:
    """Of a function in C: "bytes.find", "time.monotonic"."""
    name = getattr(function, "__qualname__", "?")
    module = getattr(function, "__module__", None)
    return f"{module}.{name}" if module and module != "builtins" else name


class Counter:
    """The counts of all threads, and their snapshots."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._snapshots = directory, 0
        self._parts, self._threads = Parts(), list[ThreadCounts]()

    def begin(self) -> None:
        """From now on, in this thread and in those that begin later."""
        signal.signal(SNAPSHOT, lambda *_: self.snapshot())
        threading.setprofile(self._on_first_event)
        sys.setprofile(self._of_this_thread())

    def _of_this_thread(self) -> Callable[[FrameType, str, object], None]:
        counts = ThreadCounts(self._parts)
        self._threads.append(counts)
        return counts.on_event

    def _on_first_event(self, frame: FrameType, event: str, argument: object) -> None:
        count = self._of_this_thread()
        sys.setprofile(count)
        count(frame, event, argument)

    def snapshot(self) -> None:
        """Write the counts so far."""
        profile = sys.getprofile()
        sys.setprofile(None)
        python: dict[tuple[str, str], int] = {}
        c: dict[tuple[str, str], int] = {}
        for counts in tuple(self._threads):
            for (key, part), count in dict(counts.python).items():
                label = (self._parts.label(key), part)
                python[label] = python.get(label, 0) + count
            for named, count in dict(counts.c).items():
                c[named] = c.get(named, 0) + count
        self._snapshots += 1
        path = self._directory / f"calls.{self._snapshots}"
        rows = {"python": [[*key, count] for key, count in python.items()], "c": [[*key, count] for key, count in c.items()]}
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(rows))
        os.rename(unfinished, path)
        sys.setprofile(profile)


def main(argv: list[str]) -> None:
    """Run the program. What it raises, and its exit, are its own."""
    directory, kind, *rest = argv[1:]
    counter = Counter(Path(directory))
    if kind == "-c":
        code, *arguments = rest
        sys.argv = ["-c", *arguments]
        counter.begin()
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    elif kind == "-m":
        module, *arguments = rest
        sys.argv = [module, *arguments]
        counter.begin()
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [kind, *rest]
        sys.path.insert(0, str(Path(kind).resolve().parent))
        counter.begin()
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv)
