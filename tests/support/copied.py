"""A queue on a disk in memory, copied to directories that are there, for commands."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.disk import MemoryDisk


def copy_out(disk: MemoryDisk, directory: Path) -> tuple[Path, Path]:
    """Write the queue in `/q` and the spool in `/s` below this directory. Return where they are."""
    roots = {"/q": directory / "queue", "/s": directory / "spool"}
    for path in sorted(disk.directories):
        place = _place(roots, path)
        if place is not None:
            place.mkdir(0o700, exist_ok=True)
    for path in disk.names:
        place = _place(roots, path)
        if place is not None:
            place.touch(0o600)
            place.write_bytes(disk.content_of(path))
    return roots["/q"], roots["/s"]


def _place(roots: dict[str, Path], path: str) -> Path | None:
    for root, place in roots.items():
        if path == root or path.startswith(f"{root}/"):
            return place / path[len(root) + 1 :]
    return None
