"""A queue that a server delivers whole: each entry comes out as it has to, once, and each content byte by byte.

What was to be delivered arrives at a next hop as the queue had it; what had failed is in a report to its sender; what was
held arrives when it is released; what was deleted stays until its time. Nothing else may come, and nothing else may be left.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs

from benchmarks.sinks.recording import Recording, listen
from mailismus.queue.interface import Area
from tests.project.runners import await_text, running
from tests.project.runners import command as serve
from tests.support.processes import free_port

PROMPT = (Area.INCOMING, Area.BOUNCES)
"""Areas whose entries must be due when the queue is drained: a flush does not hasten them."""
IDLE_S = 120.0
_FAILED = re.compile(rb"^Final-Recipient: rfc822; (\S+)\r$", re.MULTILINE)
_CONFIG = """<mailserver>
<application><announcehost>mx.example.net</announcehost><dirpaths><root>{path}</root></dirpaths></application>
<mta><queue provider="{provider}"><rootpath>{path}/queue</rootpath></queue>
<submit><listeners><listener name="SMTP" interface="127.0.0.1" port="0"/></listeners></submit>
<deliver><relays><relay address="127.0.0.1:{port}"/></relays></deliver></mta>
<admin><socket>{path}/admin.sock</socket></admin></mailserver>
"""


class Wrong(Exception):
    """A promise was broken."""


@attrs.frozen
class Told:
    """What a queue tells: a line for each entry, sorted, and the digest of each content."""

    entries: list[str]
    digests: dict[str, str]


@attrs.define
class Arrived:
    """What came to the next hop. `mail`: digest of the content and recipient; `reports`: whom they went to, and a recipient
    that had failed."""

    mail: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    reports: Counter[tuple[str, str]] = attrs.field(factory=Counter)

    @property
    def count(self) -> int:
        """How many in all."""
        return self.mail.total() + self.reports.total()


class _Hop(Recording):
    """A connection of the next hop, which takes everything."""

    def __init__(self, arrived: Arrived) -> None:
        super().__init__(io.BytesIO())
        self._arrived = arrived

    def take(self, wire: bytes, is_answered: bool) -> None:
        recipients = [one.decode("ascii") for one in self._recipients]
        if self._sender:
            digest = hashlib.sha256(wire).hexdigest()
            self._arrived.mail.update((digest, one) for one in recipients)
        else:
            failed = [one.decode("ascii") for one in _FAILED.findall(wire)]
            self._arrived.reports.update((to, one) for to in recipients for one in failed)
        self._replies.append(b"250 2.0.0 Ok\r\n")


@contextmanager
def next_hop(arrived: Arrived) -> Iterator[int]:
    """A next hop in a thread of its own, and its port."""
    port, loop = free_port(), asyncio.new_event_loop()
    server = loop.run_until_complete(listen(lambda: _Hop(arrived), port))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def expected_of(told: Told) -> tuple[Arrived, dict[str, float]]:
    """What must arrive, and until when each deleted entry, a line of `told`, is kept."""
    wanted, kept = Arrived(), dict[str, float]()
    for line in told.entries:
        part = json.loads(line)
        recipient, area = part["recipients"], Area(part["queue_name"])
        if area is Area.DELETED:
            kept[line] = recipient["next_attempt"]
        elif area is Area.BOUNCES:
            wanted.reports[part["sender"], recipient["address"]] += 1
        else:
            wanted.mail[told.digests[part["queue_id"]], recipient["address"]] += 1
    return wanted, kept


def drain(path: Path, provider: str, told: Told) -> list[str]:
    """Start a server on the queue in this directory, flush and release, wait until all has come, and stop it. Return the
    lines of entries that are kept still. Raises `Wrong`."""
    wanted, kept = expected_of(told)
    arrived = Arrived()
    with next_hop(arrived) as port:
        config = path / "drain.xml"
        config.write_text(_CONFIG.format(path=path, provider=provider, port=port))
        with running(serve("foreground", str(config)), path) as (process, output):
            await_text(output, "ready: ")
            _queue(config, "flush")
            _queue(config, "release", "--all", "--yes", "--reason", "drained")
            _await_all(arrived, wanted.count)
            left = entries_told(_queue(config, "list", "--json"))
            process.terminate()
            process.wait(60)
        if "Traceback" in output.read_text():
            raise Wrong(f"the server has faults of its own: {output.read_text()}")
    compare(wanted, arrived)
    compare_left(kept, left, time.time())
    return left


def compare(wanted: Arrived, arrived: Arrived) -> None:
    """Each message at each recipient, and each failed recipient in a report: once, and nothing else. Raises `Wrong`."""
    for what, due, came in (("mail", wanted.mail, arrived.mail), ("reports", wanted.reports, arrived.reports)):
        if came != due:
            raise Wrong(f"{what}: missing {list((due - came).items())[:9]}, too many {list((came - due).items())[:9]}")


def compare_left(kept: Mapping[str, float], left: Collection[str], now: float) -> None:
    """What was deleted is left until its time, and nothing else. Raises `Wrong`."""
    if not {line for line, until in kept.items() if until > now} <= set(left) <= kept.keys():
        raise Wrong(f"left are {len(left)} entries, to be kept until their time are {len(kept)}: {list(left)[:9]}")


def entries_told(listed: str) -> list[str]:
    """A line for each entry of `queue list --json`, sorted."""
    parts = map(json.loads, listed.splitlines())
    return sorted(json.dumps({**part, "recipients": one}) for part in parts for one in part["recipients"])


def _queue(config: Path, *words: str) -> str:
    command = [sys.executable, "-m", "mailismus", "--config", str(config), "queue", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise Wrong(f"queue {words[0]} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def _await_all(arrived: Arrived, count: int) -> None:
    """Return when so many have come, and no more come for a moment, or none for long."""
    seen, since_s = -1, time.monotonic()
    while True:
        if arrived.count != seen:
            seen, since_s = arrived.count, time.monotonic()
        if time.monotonic() - since_s > (2.0 if seen >= count else IDLE_S):
            return
        time.sleep(0.1)
