"""Bytes copied in user mode, by the calls that copy: valgrind's tool dhat in its mode `copy` (the parsing is pure).

Rules: counted are memcpy, memmove and their like, exactly, by the C functions on the stack; of the whole life of the
process, so that content is told from the rest by two sizes of message. Not counted: copies by the kernel (`system_calls`),
by loops of the compiler's own, and by realloc. Not here: who in Python called the C function.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.stage.load import program

CALLERS = 12
COPYING = ("mem", "str", "wmem", "wcs", "bcopy", "stp")
"""How the names of functions begin that only copy."""
INTERPRETER = ("_PyEval", "_PyObject_Vectorcall", "PyObject_Vectorcall", "method_vectorcall", "cfunction_vectorcall", "???")
"""How the names of functions begin behind which the stack says nothing more."""


def command(file: Path) -> list[str]:
    """The command line to put in front of a server's."""
    options = ["--tool=dhat", "--mode=copy", f"--num-callers={CALLERS}"]
    return [program("valgrind"), *options, f"--dhat-out-file={file}", f"--log-file={file}.log"]


def parse(text: str) -> dict[str, int]:
    """Bytes copied by the functions that had them copied, the innermost first, up to the interpreter."""
    profile = json.loads(text)
    found: dict[str, int] = {}
    for point in profile["pps"]:
        key = shortened([name_of(profile["ftbl"][index]) for index in point["fs"]])
        found[key] = found.get(key, 0) + point["tb"]
    return found


def name_of(frame: str) -> str:
    """The function of `0x1234: memmove (file.c:12)`."""
    return frame.split(": ", 1)[-1].split(" (", 1)[0]


def shortened(functions: list[str]) -> str:
    """Without the copying function, and without the interpreter."""
    names = functions[1:] if functions and functions[0].startswith(COPYING) else functions
    kept: list[str] = []
    for name in names:
        if name.startswith(INTERPRETER):
            break
        kept.append(name)
    return " < ".join(kept[:3]) or "interpreter"
