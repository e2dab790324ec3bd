"""What a server costs: processor time and memory of all its processes, and what else ran on the machine meanwhile.

Rules: processes that have ended count too. Best is a control group (version 2, also in its hybrid mount), which counts
in nanoseconds and cannot be left; else the sum over the process tree of its own and its waited-for children's time.
Not here: barriers (`barriers`), profiles (`budget`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import attrs

from tests.support.processes import TrialError, wait_until

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
AT_REST_S, AT_REST_SHARE = 2.0, 0.05
"""At rest: so little of a processor for so long."""


@attrs.frozen
class Cpu:
    """Processor seconds, in user and in kernel mode."""

    user_s: float
    system_s: float

    @property
    def total_s(self) -> float:
        """Both together."""
        return self.user_s + self.system_s

    def minus(self, before: Cpu) -> Cpu:
        """What was used since."""
        return Cpu(self.user_s - before.user_s, self.system_s - before.system_s)


class Account(Protocol):
    """The processes of one server. `cgroup` is where its first process has to be started, if anywhere."""

    cgroup: Path | None

    def begin(self, pid: int) -> None:
        """The server's first process runs."""

    def pids(self) -> list[int]:
        """All its processes that live."""

    def cpu(self) -> Cpu:
        """What all of them have used so far, the dead included."""

    def close(self) -> None:
        """All are gone, or shall be."""


class ControlGroup:
    """An account kept by the kernel. Raises: OSError where no control group can be made."""

    def __init__(self, name: str) -> None:
        for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
            if (root / "cgroup.procs").exists() and (root / "cpu.stat").exists():
                self.cgroup: Path | None = root / f"mailismus-bench-{os.getpid()}-{name}"
                self._path = root / f"mailismus-bench-{os.getpid()}-{name}"
                self._path.mkdir()
                return
        raise OSError("no control group file system of version 2")

    def begin(self, pid: int) -> None:
        """It began inside."""

    def pids(self) -> list[int]:
        """All its processes that live."""
        return [int(pid) for pid in (self._path / "cgroup.procs").read_text().split()]

    def cpu(self) -> Cpu:
        """What all of them have used so far, the dead included."""
        rows = dict(line.split() for line in (self._path / "cpu.stat").read_text().splitlines())
        return Cpu(int(rows["user_usec"]) / 1e6, int(rows["system_usec"]) / 1e6)

    def close(self) -> None:
        """Ends what is left in it, which can only be ours, and removes it."""
        for pid in self.pids():
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        try:
            wait_until(lambda: not self.pids(), 10, "processes of the control group to end")
        finally:
            self._path.rmdir()


class Tree:
    """An account by walking /proc from the server's first process."""

    cgroup: Path | None = None

    def __init__(self) -> None:
        self._root = 0

    def begin(self, pid: int) -> None:
        """The server's first process runs."""
        self._root = pid

    def pids(self) -> list[int]:
        """All its processes that live."""
        return sorted(descendants(self._root, _parents()))

    def cpu(self) -> Cpu:
        """What all of them have used so far; the dead are in what their parents have waited for."""
        user = system = 0
        for pid in self.pids():
            fields = _stat(pid)
            if fields:
                user += int(fields[11]) + int(fields[13])
                system += int(fields[12]) + int(fields[14])
        return Cpu(user / TICKS_PER_S, system / TICKS_PER_S)

    def close(self) -> None:
        """Nothing to give back."""


def account(name: str) -> Account:
    """The best account this machine allows."""
    try:
        return ControlGroup(name)
    except OSError:
        return Tree()


def descendants(root: int, parents: dict[int, int]) -> set[int]:
    """The process and all that descend from it; `parents` maps each process to its parent."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found, todo = set[int](), [root] if root in parents else []
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo.extend(children.get(pid, ()))
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name, which may hold blanks; empty for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _parents() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))):
            found[int(name)] = int(fields[1])
    return found


def pss_bytes(pids: Iterable[int]) -> int:
    """Proportional set size of the processes together: shared pages count once in all."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        except PermissionError as e:
            raise TrialError(f"memory of process {pid}: {e}; run as the same user or root") from e
        total += sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))
    return total


def at_rest(account: Account, timeout_s: float) -> int:
    """Waits until the processes use next to no processor time; gives the most memory seen until then (bytes)."""
    deadline_s, most = time.monotonic() + timeout_s, 0
    while True:
        cpu, began_s = account.cpu(), time.monotonic()
        time.sleep(AT_REST_S)
        share = account.cpu().minus(cpu).total_s / (time.monotonic() - began_s)
        most = max(most, pss_bytes(account.pids()))
        if share < AT_REST_SHARE or time.monotonic() > deadline_s:
            return most


@attrs.frozen
class Machine:
    """The whole machine's processors at one moment."""

    at_s: float
    busy_s: float
    steal_s: float

    @classmethod
    def now(cls) -> Machine:
        """Read from /proc/stat; steal is time that the hypervisor gave to others."""
        with open("/proc/stat") as f:
            user, nice, system, _idle, _iowait, irq, softirq, steal = (
                int(x) / TICKS_PER_S for x in f.readline().split()[1:9]
            )
        return cls(time.monotonic(), user + nice + system + irq + softirq, steal)

    def others_share(self, before: Machine, ours_s: float) -> float:
        """Share (0..1) of the machine that others used since: stolen, and busy without `ours_s` processor seconds."""
        capacity = (self.at_s - before.at_s) * (os.cpu_count() or 1)
        used = self.busy_s - before.busy_s - ours_s + self.steal_s - before.steal_s
        return min(1.0, max(0.0, used / capacity)) if capacity > 0 else 0.0


def cpu_of(pid: int) -> float:
    """Processor seconds of one living process, waited-for children included; 0 when it is gone."""
    fields = _stat(pid)
    return sum(int(x) for x in fields[11:15]) / TICKS_PER_S if fields else 0.0
