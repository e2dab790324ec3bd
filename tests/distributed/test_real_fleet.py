"""The fleet harness in its short form: two servers as processes on the real services, killed and stopped under load. Run
by hand: what a kill doubles there depends on the machine."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from benchmarks.stage.directories import MEMORY_FILE_SYSTEMS, file_system
from tests.distributed.real.place import NAMES
from tests.distributed.services import packages, service
from tests.durability.harness.fleet.__main__ import arguments, main, rounds
from tests.durability.harness.fleet.round import Outcome
from tests.durability.harness.fleet.trouble import Kind

pytestmark = pytest.mark.exhaustive
SETTLED_S = "2"
"""What a next hop answered so long before a kill may come again: beside other work an outcome was durable 1.3 s later."""


@pytest.fixture
def directory(tmp_path: Path) -> str:
    for name in NAMES:
        service(name)
    packages()
    for path in (tmp_path, Path(tempfile.gettempdir()), Path("/var/tmp")):
        if path.is_dir() and file_system(path) not in MEMORY_FILE_SYSTEMS:
            return str(path)
    pytest.skip("no directory for temporary files is on a disk")


def played(directory: str, *more: str) -> Outcome:
    options = arguments().parse_args(["--directory", directory, "--next-hop", "up", "--longest", "1", *more])
    ((_, _, outcome),) = rounds(options)
    return outcome


def test_a_kill_loses_nothing_and_a_clean_stop_doubles_nothing(directory: str) -> None:
    outcome = played(directory, "--kills", "1", "--terms", "1", "--rate", "6", "--settled", SETTLED_S)
    assert {trouble.kind for trouble in outcome.troubles} == {Kind.KILL, Kind.TERM}
    assert outcome.verdict.faults == {}
    assert outcome.is_good
    assert outcome.verdict.messages > 0
    assert not any(count for place, count in outcome.verdict.excused.items() if outcome.troubles[place].kind is Kind.TERM)


def test_of_servers_that_answer_before_mail_is_durable_it_is_seen(directory: str) -> None:
    outcome = played(directory, "--kills", "1", "--rate", "60", "--timeout", "5", "--fault", "250-before-durable")
    assert outcome.verdict.lost


def test_a_full_database_is_said_to_be_full_and_mail_is_taken_soon_behind_it(directory: str, tmp_path: Path) -> None:
    record = tmp_path / "record"
    more = ["--only", "fill-cassandra", "--frozen", "15", "--rate", "5", "--record", str(record)]
    assert main(["--directory", directory, "--services", *more]) == 0
    reaction = json.loads(record.read_text().splitlines()[0])
    assert reaction["replies"]["452"] > reaction["replies"].get("451", 0)


def test_of_servers_that_claim_nothing_it_is_seen(directory: str) -> None:
    assert played(directory, "--flushes", "1", "--fault", "no-claim").verdict.unexplained
