"""What the services that are up use: processor time of their processes, and the disk."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from benchmarks.distributed.figures import SERVICES
from benchmarks.measure.costs import cpu_of
from tests.services.jars import jars_directory
from tests.services.places import ServicesDirectory, default_directory
from tests.support.processes import TrialError

FLUSH_S = 60.0
_JMX = re.compile(r"-Dcassandra\.jmx\.local\.port=(\d+)")


@attrs.frozen
class Used:
    """The services of one directory, as they run at its making. `pids`: by service."""

    directory: Path
    pids: Mapping[str, frozenset[int]]

    @classmethod
    def now(cls) -> Used:
        """Those that are up. Raises: TrialError."""
        directory = ServicesDirectory(default_directory()).path
        found: dict[str, set[int]] = {name: set() for name in SERVICES}
        for pid, words, place in _processes():
            for name in SERVICES:
                if f"{directory / name}/" in words or place.is_relative_to(directory / name):
                    found[name].add(pid)
        absent = [name for name, pids in found.items() if not pids]
        if absent:
            raise TrialError(f"no process of {', '.join(absent)} is seen")
        return cls(directory, {name: frozenset(pids) for name, pids in found.items()})

    def cpu_s(self) -> dict[str, float]:
        """Processor seconds of each service so far."""
        return {name: sum(map(cpu_of, pids)) for name, pids in self.pids.items()}

    def disk_bytes(self, service: str, part: str = "data") -> int:
        """What the files below its directory have on the disk. It may be mounted for the service alone."""
        pid = min(self.pids[service])
        root = Path(f"/proc/{pid}/root{self.directory}/{service}/{part}")
        return sum(map(_blocks_of, root.rglob("*")))

    def files(self, service: str, part: str = "data") -> int:
        """How many there are."""
        pid = min(self.pids[service])
        root = Path(f"/proc/{pid}/root{self.directory}/{service}/{part}")
        return sum(path.is_file() for path in root.rglob("*"))

    def table_bytes(self, keyspace: str) -> dict[str, int]:
        """What each table of a keyspace has on the disk, everything flushed. Raises: TrialError."""
        self._flush(keyspace)
        pid = min(self.pids["cassandra"])
        root = Path(f"/proc/{pid}/root{self.directory}/cassandra/data/data/{keyspace}")
        found: dict[str, int] = {}
        for table in root.iterdir() if root.exists() else ():
            sizes = map(_size_of, table.glob("*.db"))
            name = table.name.rpartition("-")[0]
            found[name] = found.get(name, 0) + sum(sizes)
        return found

    def _flush(self, keyspace: str) -> None:
        arguments = (self.directory / "cassandra" / "java.args").read_text()
        port = _JMX.search(arguments)
        if port is None:
            raise TrialError("Cassandra has no port to be administered at")
        opened = [line for line in arguments.splitlines() if line.startswith("--add-")]
        command = ["java", "-Xmx64m", *opened, "-cp", f"{jars_directory()}/*", "org.apache.cassandra.tools.NodeTool"]
        words = ["-p", port[1], "flush", keyspace]
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False, timeout=FLUSH_S)
        if done.returncode:
            raise TrialError(f"nodetool flush: {done.stderr.strip()[-500:]}")


def _blocks_of(path: Path) -> int:
    """Bytes that a file has on the disk; 0 where it has gone."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return 0
    return found.st_blocks * 512 if stat.S_ISREG(found.st_mode) else 0


def _size_of(path: Path) -> int:
    """Bytes of a file; 0 where a compaction has removed it."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _processes() -> Iterator[tuple[int, str, Path]]:
    """Each process, its command line, and where it works: those of the services name files below their directories, or
    work there."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().decode("utf-8", "replace")
                yield int(name), words, Path(os.readlink(f"/proc/{name}/cwd"))
            except OSError:
                continue
