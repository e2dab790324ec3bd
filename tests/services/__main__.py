"""The commands: `python -m tests.services up|down|status|fetch` and `kill|freeze|thaw|slow|fill|wipe|restart NAME`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.services.control import ControlError, ask
from tests.services.jars import FetchError, fetch
from tests.services.kinds import KINDS, NODES
from tests.services.places import ServicesDirectory, default_directory, is_locked, wait_for_end
from tests.services.seat import kind_of
from tests.support.processes import TrialError

ROOT = Path(__file__).parents[2]
DEEDS = {
    "kill": "kill its processes (SIGKILL); it stays down until restart",
    "freeze": "stop it where it is (SIGSTOP)",
    "thaw": "let it go on, neither slow nor full",
    "slow": "its answers come SECONDS later",
    "fill": "it has no room for what is written: an alarm, a 507, a full disk",
    "wipe": "kill it and start it anew, without its data",
    "restart": "stop it cleanly, start it over its data; it is well then",
}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m tests.services", description=str(sys.modules["tests.services"].__doc__))
    top.formatter_class = argparse.RawDescriptionHelpFormatter
    top.add_argument("--directory", type=Path, default=default_directory(), help="default: %(default)s")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch", help="fetch Cassandra by Maven, if it is not there")
    up = commands.add_parser("up", help="start services, and wait until they are well")
    up.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(KINDS)}; default: all")
    up.add_argument("--for", dest="pid", type=int, metavar="PID", help="end with that process; default: the caller")
    up.add_argument(
        "--any", action="store_true", help="leave out a service that can't be had or does not start, and say why"
    )
    text = "three nodes each of rabbitmq and cassandra, in place of one: rabbitmq-1 ..."
    up.add_argument("--replicated", action="store_true", help=text)
    commands.add_parser("down", help="end them, and remove their directory")
    status = commands.add_parser("status", help="show how they are; 69: they are not up")
    status.add_argument("--json", action="store_true", help="also what clients need to know")
    for deed, text in DEEDS.items():
        command = commands.add_parser(deed, help=text)
        command.add_argument("name", metavar="NAME", choices=[*KINDS, *NODES])
        if deed == "slow":
            command.add_argument("seconds", metavar="SECONDS", type=float)
    return top


def log_of(directory: ServicesDirectory) -> Path:
    """What the keeper says of its own troubles."""
    return directory.path.with_name(directory.path.name + ".log")


def up(directory: ServicesDirectory, names: list[str], pid: int, options: Sequence[str]) -> int:
    """Start services. `options`: of the keeper."""
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        return _fail(os.EX_USAGE, f"{unknown[0]}: unknown; there are {', '.join(KINDS)}")
    if is_locked(directory.lock):
        return _fail(os.EX_TEMPFAIL, f"services are up already in {directory.path}")
    missing = {name: KINDS[name].missing(directory.path.parent) for name in names or KINDS}
    lines = [f"{name}: {text}" for name, texts in missing.items() for text in texts]
    wanted = [name for name, texts in missing.items() if not texts]
    if lines and not ("--any" in options and wanted):
        return _fail(os.EX_UNAVAILABLE, *lines)
    _warn(lines)
    begun = time.monotonic()
    command = [sys.executable, "-m", "tests.services.keeper", str(directory.path), str(pid), *wanted, *options]
    log = log_of(directory).open("wb")
    with (
        log,
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        ) as keeper,
    ):
        assert keeper.stdout is not None
        line = keeper.stdout.readline()
        keeper.stdout.close()
        if not line:
            return _fail(os.EX_SOFTWARE, f"the keeper ended: {log_of(directory).read_text().strip()}")
        answer = json.loads(line)
        if "error" in answer:
            return _fail(os.EX_UNAVAILABLE, answer["error"])
        keeper.returncode = 0  # it goes on without us
    _warn(f"{name}: {text}" for name, text in answer["left_out"].items())
    if not log_of(directory).stat().st_size:
        log_of(directory).unlink()
    for name, address in addresses_of(directory.read_facts() or {}).items():
        print(f"{name}: {address}")
    print(f"up after {time.monotonic() - begun:.1f} s, until process {pid} ends")
    return 0


def status(directory: ServicesDirectory, *, as_json: bool) -> int:
    """Show how the services are."""
    facts = directory.read_facts()
    if facts is None:
        return _fail(os.EX_UNAVAILABLE, f"no services are up in {directory.path}")
    states = ask(directory.socket, {"do": "status"})["services"]
    if as_json:
        print(json.dumps({name: {**facts[kind_of(name)], "state": state} for name, state in states.items()}))
        return 0
    addresses = addresses_of(facts)
    for name, state in states.items():
        print(f"{name}: {state} at {addresses[name]}")
    return 0


def addresses_of(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Where each service is, or each of its nodes."""
    nodes = [known.get("nodes") or {name: known.get("url") or known["hosts"]} for name, known in facts.items()]
    return {name: address for addresses in nodes for name, address in addresses.items()}


def main(arguments: list[str] | None = None) -> int:
    """Carry out one command."""
    given = parser().parse_args(arguments)
    directory = ServicesDirectory(given.directory.absolute())
    if directory.remove_leftovers():
        print(f"removed {directory.path}, which a killed keeper has left", file=sys.stderr)
    try:
        match given.command:
            case "fetch":
                signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # half a download is removed
                print(fetch())
            case "up":
                options = [f"--{name}" for name in ("any", "replicated") if getattr(given, name)]
                return up(directory, given.names, given.pid or os.getppid(), options)
            case "status":
                return status(directory, as_json=given.json)
            case "down":
                if not is_locked(directory.lock):
                    print("nothing is up")
                    return 0
                ask(directory.socket, {"do": "down"})
                try:
                    wait_for_end(directory.lock)
                except TrialError as error:
                    return _fail(os.EX_SOFTWARE, f"{error}; see {log_of(directory)}")
                print("down")
            case deed:
                if directory.read_facts() is None:
                    return _fail(os.EX_UNAVAILABLE, f"no services are up in {directory.path}")
                request = {"do": deed, "name": given.name, "seconds": getattr(given, "seconds", 0.0)}
                print(f"{given.name}: {ask(directory.socket, request)['state']}")
    except (ControlError, FetchError) as error:
        return _fail(os.EX_UNAVAILABLE, str(error))
    return 0


def _warn(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr)


def _fail(code: int, *lines: str) -> int:
    _warn(lines)
    return code


if __name__ == "__main__":
    sys.exit(main())
