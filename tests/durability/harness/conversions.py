"""Whole conversions by the command itself, killed at random or cut off: `python -m tests.durability.harness.conversions`.

A queue of messages from nothing to 5 MB, new, deferred and bounced, goes round through all providers and settings of hard
links. After each conversion `queue list --json` must tell the same entries, and each content have the same SHA-256. Then
conversions are killed with SIGKILL after a random time, with `--power-cut` on a file system whose power is cut then; the
same command is given again and must end with the same queue. `--full`: on a file system without room for a second queue it
must end with 74 and change nothing. `--copied`: commands read a queue of chunks that was copied, a start refuses it,
`fsck --repair` puts it right, and a server delivers all of it, byte by byte (`draining`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from mailismus.disk.posix import PosixDisk
from mailismus.providers import PROVIDERS
from mailismus.queue.files.conversion import CONVERSION, ConversionState, read_conversion
from mailismus.queue.interface import Filter
from mailismus.queue.provider import QueuePlace
from tests.durability.harness.built_queue import NOW, build
from tests.durability.harness.draining import PROMPT, Told, Wrong, drain, entries_told
from tests.project.runners import command as serve
from tests.support.power import FileSystem, LoopDisk

TARGETS = (("log", False), ("chunk", False), ("log", False), ("clustered", True), ("chunk", False), ("clustered", False))
"""Providers and hard links, one after the other: into each of the others, and out of it."""
CONFIG = """<mailserver><application><announcehost>mx.example.net</announcehost></application><mta>
<queue provider="{provider}"><rootpath>{path}/queue</rootpath>{spool}</queue>
</mta><admin><socket>{path}/admin.sock</socket></admin></mailserver>
"""
HOMES = ("pid", "mess", "intd", "todo", "info", "local", "remote", "bounce")
"""Directories of a queue of chunks, in which each message that waits has its files."""


def main(given: Sequence[str] | None = None) -> int:
    """Run it. Return the exit code: 0 if every promise was kept."""
    options = arguments().parse_args(given)
    kind = FileSystem[options.power_cut.upper()] if options.power_cut else FileSystem.EXT4
    with TemporaryDirectory(dir=options.directory, prefix="conversions-") as made:
        size_mb = options.disk_mb if options.power_cut or options.full else 0
        disk = LoopDisk(Path(made), size_mb, kind) if size_mb else None
        with disk or nullcontext():
            path = disk.mount_point if disk is not None else Path(made)
            trial = Trial(path, options, disk if options.power_cut else None)
            if options.full:
                trial.fill_up()
            elif options.copied:
                trial.copy()
            else:
                if not options.no_round:
                    trial.go_round()
                trial.kill(options.kills, random.Random(options.seed))
    return 0


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.durability.harness.conversions")
    parser.add_argument("--messages", type=int, default=1000)
    parser.add_argument("--mean-exponent", type=float, default=60.0, help="sizes are 5 MB * random ** this")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-round", action="store_true", help="kill at once")
    parser.add_argument("--power-cut", choices=("ext4", "xfs"))
    parser.add_argument("--full", action="store_true", help="a file system without room for a second queue")
    parser.add_argument("--copied", action="store_true", help="copy a queue of chunks, and repair the copy")
    parser.add_argument("--disk-mb", type=int, default=900)
    parser.add_argument("--directory", default="/var/tmp")
    return parser


class Trial:
    """One queue and its conversions."""

    def __init__(self, path: Path, options: argparse.Namespace, disk: LoopDisk | None) -> None:
        """Build the queue. `disk`: whose power is cut."""
        self._path, self._disk, self._provider = path, disk, "clustered"
        self._taken_s: dict[tuple[str, bool], float] = {}
        path.chmod(0o700)
        begun_s = time.monotonic()
        now, prompt = (time.time(), PROMPT) if options.copied else (NOW, ())
        build(path, options.messages, options.mean_exponent, now, prompt)
        self._told = self.tell()
        size = sum(file.stat().st_size for file in (path / "spool").rglob("*.msg"))
        say(f"built {options.messages} messages, {len(self._told.entries)} entries, {size >> 20} MiB", begun_s)

    def go_round(self) -> None:
        """Convert to each provider in turn. Raises `Wrong`."""
        for provider, links in TARGETS:
            begun_s = time.monotonic()
            done = self._convert(provider, links)
            taken_s = self._taken_s[provider, links] = time.monotonic() - begun_s
            if done.returncode:
                raise Wrong(f"the conversion ended with {done.returncode}: {done.stderr}")
            self._compare(provider)
            self._forget(links)
            say(f"{done.stdout.splitlines()[0]} ({taken_s:.1f} s) The same entries and digests.", begun_s)

    def kill(self, kills: int, chance: random.Random) -> None:
        """Kill conversions at random, give the command again, compare. Raises `Wrong`."""
        met: dict[str, int] = {}
        for number in range(kills):
            provider, links = TARGETS[number % len(TARGETS)]
            begun_s = time.monotonic()
            if (provider, links) not in self._taken_s:
                self._convert(provider, links)
                self._taken_s[provider, links] = time.monotonic() - begun_s
                self._compare(provider)
                self._forget(links)
                begun_s = time.monotonic()
            running = subprocess.Popen(
                self._command(provider, links, "convert", "--to", provider), stdout=subprocess.DEVNULL
            )
            try:
                running.wait(chance.uniform(0.2, self._taken_s[provider, links]))
            except subprocess.TimeoutExpired:
                running.kill()
            running.wait()
            if self._disk is not None:
                self._disk.shut_down()
                self._disk.recover()
            found = read_conversion(PosixDisk(), str(self._path / "queue"))
            state = "none" if found is None else found.state.value
            if found is None and (self._path / "queue" / CONVERSION).exists():
                state = "building"
            met[state] = met.get(state, 0) + 1
            if found is None:
                self._compare(self._provider)
            if found is None or found.state is not ConversionState.KEPT:
                done = self._convert(provider, links)
                if done.returncode:
                    raise Wrong(f"begun again it ended with {done.returncode}: {done.stderr}")
            self._compare(provider)
            self._forget(links)
            say(f"stopped {number + 1}: {state}, begun again: the same", begun_s)
        say(f"{kills} stopped, states met: {met}; lost 0, changed 0")

    def fill_up(self) -> None:
        """Convert without room, then fill the file system while the new queue is written: 74, and nothing is changed. Raises
        `Wrong`."""
        ballast = self._path / "ballast"
        take_all_but(ballast, 3 << 20)
        for provider, links in TARGETS[1:3]:
            done = self._convert(provider, links)
            say(f"exit {done.returncode}: {done.stderr.strip()}")
            if done.returncode != os.EX_IOERR or (self._path / "queue" / CONVERSION).exists():
                raise Wrong("a conversion without room did not end with 74, or left something")
            self._compare(self._provider)
        ballast.unlink()
        codes: dict[int, int] = {}
        for number in range(8):
            provider, links = TARGETS[number % len(TARGETS)]
            command = self._command(provider, links, "convert", "--to", provider)
            running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            begun = [
                self._path / "spool" / CONVERSION / "new" / "1f",
                self._path / "queue" / CONVERSION / "new" / "conf-split",
            ]
            while running.poll() is None and not any(path.exists() for path in begun):
                time.sleep(0.002)
            take_all_but(ballast, number * 500_000)
            _, error = running.communicate()
            ballast.unlink()
            codes[running.returncode] = codes.get(running.returncode, 0) + 1
            if running.returncode == 0:
                self._compare(provider)
                self._forget(links)
                continue
            say(f"filled up, exit {running.returncode}: {error.strip()}")
            if running.returncode != os.EX_IOERR:
                raise Wrong("a full disk did not end it with 74")
            self._compare(self._provider)
        say(f"filled up while it ran, exit codes: {codes}; changed 0")

    def copy(self) -> None:
        """Convert to chunks, copy the queue by `cp -a`, and go on with the copy: it tells the same, a start refuses it, a
        repair changes names alone, and then it is delivered whole. Raises `Wrong`."""
        self._convert("chunk", False)
        self._compare("chunk")
        self._forget(False)
        other = self._path / "other"
        other.mkdir(0o700)
        begun_s = time.monotonic()
        subprocess.run(["cp", "-a", str(self._path / "queue"), str(other / "queue")], check=True)
        self._path = other
        self._compare("chunk")
        say("copied: the same entries and digests", begun_s)
        config = self._command("chunk", False)[:-1]
        server = serve("foreground", config[-1])
        refused = subprocess.run(server, cwd=self._path, capture_output=True, text=True, check=False)
        say(f"a start: exit {refused.returncode}: {refused.stderr.strip().splitlines()[-1]}")
        if refused.returncode != os.EX_DATAERR:
            raise Wrong("a start took the copy")
        self._compare("chunk")
        for words, code in (((), os.EX_DATAERR), (("--repair",), 0), ((), 0)):
            begun_s = time.monotonic()
            done = subprocess.run([*config, "fsck", *words], capture_output=True, text=True, check=False)
            said = " ".join(("fsck", *words))
            say(f"{said}: exit {done.returncode}: {done.stdout.strip().splitlines()[-1]}", begun_s)
            if done.returncode != code:
                raise Wrong(f"{said} ended with {done.returncode}: {done.stderr}")
            self._compare("chunk")
        say("repaired: the same entries and digests")
        begun_s = time.monotonic()
        left = drain(self._path, "chunk", self._told)
        kept = {json.loads(line)["queue_id"] for line in left}
        files = [one for home in HOMES for one in (self._path / "queue" / home).rglob("*") if one.is_file()]
        say(f"delivered: all as it was; left are {len(left)} deleted entries of {len(kept)} messages", begun_s)
        if len({file.name for file in files}) != len(kept):
            raise Wrong(f"{len(kept)} messages are left, with files of {len({file.name for file in files})}")

    def tell(self) -> Told:
        """What the queue tells now."""
        listed = subprocess.run(self._command(self._provider, False, "list", "--json"), capture_output=True, check=True)
        with ProcessPoolExecutor(1) as child:  # an open queue ends with its process: no mount is busy
            return Told(entries_told(listed.stdout.decode()), child.submit(digests, self._provider, self._path).result())

    def _compare(self, provider: str) -> None:
        self._provider = provider
        if self.tell() != self._told:
            raise Wrong(f"the queue of provider {provider} tells something else")

    def _convert(self, provider: str, links: bool) -> subprocess.CompletedProcess[str]:
        command = self._command(provider, links, "convert", "--to", provider)
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def _forget(self, links: bool) -> None:
        subprocess.run(
            self._command(self._provider, links, "convert", "--forget-old"), check=True, stdout=subprocess.DEVNULL
        )

    def _command(self, provider: str, links: bool, *words: str) -> list[str]:
        """A command with the configuration of this provider; a conversion from a queue with a spool to one without has that
        of the old one, which says where the spool is."""
        if "--to" in words and not PROVIDERS.named(provider).has_spool:
            provider, links = self._provider, False
        spool = ""
        if PROVIDERS.named(provider).has_spool:
            element = "<hardlinks>Y</hardlinks>" if links else ""
            spool = f"<spool><rootpath>{self._path}/spool</rootpath>{element}</spool>"
        config = self._path / f"{provider}{'-links' * links}.xml"
        config.write_text(CONFIG.format(provider=provider, path=self._path, spool=spool))
        return [sys.executable, "-m", "mailismus", "--config", str(config), "queue", *words]


def digests(provider: str, path: Path) -> dict[str, str]:
    """Digests of all contents of the stopped queue in this directory, by spool id."""
    stopped = PROVIDERS.named(provider).open_stopped(QueuePlace(str(path / "queue"), str(path / "spool")))
    found = {}
    for page in stopped.pages(Filter()):
        for message in page:
            digest = hashlib.sha256()
            for piece in stopped.contents(message.spool_id):
                digest.update(piece)
            found[f"{message.spool_id:016X}"] = digest.hexdigest()
    return found


def take_all_but(ballast: Path, left_bytes: int) -> None:
    """Fill the file system with a file, but for so many bytes."""
    with ballast.open("wb") as file:
        free = shutil.disk_usage(ballast.parent).free
        os.posix_fallocate(file.fileno(), 0, max(1, free - left_bytes))


def say(text: str, begun_s: float | None = None) -> None:
    """Print a line at once."""
    print(text if begun_s is None else f"{time.monotonic() - begun_s:6.1f} s  {text}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
