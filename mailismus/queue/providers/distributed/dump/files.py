"""The files of a server's own directory, printed."""

from __future__ import annotations

import os
from typing import TextIO

from mailismus.disk.interface import IDisk
from mailismus.errors import Corrupt, StartError
from mailismus.queue.providers.distributed.format.version import SERVER
from mailismus.queue.providers.distributed.opening import NAME_FILE, read_name


def dump_file(path: str, out: TextIO, disk: IDisk) -> None:
    """Print the file. Raises `StartError` (65) where it is none of this provider's, `Corrupt` where it does not check,
    `OSError`."""
    parts = os.path.abspath(path).split(os.sep)
    if parts[-2:] == [SERVER, NAME_FILE]:
        name = read_name(disk, path)
        if name is None:
            raise Corrupt(path, 0, "it holds no name of a server")
        out.write(f"name of a server: HOST {name}, HOST being the name of its host\n")
    elif parts[-1] == "lock" and disk.exists(path):
        out.write("lock of a server's directory: empty, held by the server that runs\n")
    else:
        text = (
            f"{path} is no file of this provider: mail lies in its services, where dump prints ID, or AREA/SLICE/BUCKET/ID"
        )
        raise StartError(os.EX_DATAERR, text)
