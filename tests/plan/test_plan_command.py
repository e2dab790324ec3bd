"""The command `plan`: over a running server with a real socket, over files, in text and JSON, and what it refuses."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from mailismus.__main__ import main
from mailismus.config.values.settings import Settings
from mailismus.errors import StartError
from mailismus.observe.habits import AttemptClass, HopHabits
from mailismus.plan.command import PlanTools, register
from mailismus.queue.interface import Gap
from tests.admin.samples import ListedQueue
from tests.admin.worlds import Running, World
from tests.plan import samples


class Plan:
    """The command line over a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.changes: list[tuple[str, str]] = []

    def load(self, _: argparse.Namespace) -> Settings:
        whole = samples.settings()
        queue = attrs.evolve(
            whole.queue,
            rootpath=str(self.world.path / "queue"),
            spool=attrs.evolve(whole.queue.spool, rootpath=str(self.world.path / "spool")),
        )
        admin = attrs.evolve(whole.admin, socket_path=self.world.socket_path)
        return attrs.evolve(whole, queue=queue, admin=admin)

    def load_changed(self, arguments: argparse.Namespace, changes: Sequence[tuple[str, str]]) -> Settings:
        self.changes += changes
        whole = self.load(arguments)
        return attrs.evolve(whole, deliver=attrs.evolve(whole.deliver, maxserverconnections=1))

    def run(self, *words: str) -> int:
        parser = argparse.ArgumentParser()
        tools = PlanTools(self.load, self.load_changed, self.load, self.world, lambda path, now: ())
        register(parser.add_subparsers(), tools)
        arguments = parser.parse_args(["plan", *words])
        status = arguments.run(arguments)
        assert isinstance(status, int)
        return status


@pytest.fixture
def plan(world: World) -> Plan:
    world.offline = ListedQueue(samples.backlog(b"b.example", 30))
    return Plan(world)


def test_the_files_of_a_stopped_queue_have_a_forecast(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    plan.world.offline = ListedQueue([attrs.evolve(samples.message(1, b"u@b.example"), received_at=4e9)])
    assert plan.run("--until", "10m") == 0
    out = capsys.readouterr()
    assert out.out.startswith("1 entry from ")
    assert "b.example" in out.out
    assert out.err == ""
    assert plan.world.offline.is_closed


def test_a_running_server_tells_what_it_knows(
    plan: Plan, world: World, running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    running.put(*[b"u%d@b.example" % number for number in range(10)])
    known = HopHabits("mx", "b.example", 25, most_a_minute=3, refused={b"u3@b.example": AttemptClass.REFUSED})
    running.task.show_habits(lambda: iter([known]))
    assert plan.run("--json") == 0
    value = json.loads(capsys.readouterr().out)
    (found,) = value["next_hops"]
    assert (found["name"], found["entries"], found["bounced"], found["delivered"]) == ("b.example", 10, 1, 9)
    assert found["reasons"] == ["takes 3 messages a minute"]
    assert world.opened == []


def test_a_filter_tells_the_attempts_of_few_entries(
    plan: Plan, running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    running.put(b"u@b.example", b"v@c.example")
    assert plan.run("recipient=v@*", "--json") == 0
    value = json.loads(capsys.readouterr().out)
    (entry,) = value["entries"]
    assert entry["recipient"] == "v@c.example"
    assert [one["status"] for one in entry["attempts"]] == ["sent"]
    assert value["whole"]["entries"] == 1
    assert plan.run("0000000100000001-1") == 0
    assert "0000000100000001-1 u@b.example (b.example)" in capsys.readouterr().out
    assert plan.run("domain=none.example") == 0
    assert capsys.readouterr().out == "Nothing waits that is asked about.\n"


def test_another_setting_and_a_host_that_is_gone_are_compared(
    plan: Plan, running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    running.put(b"u@b.example")
    assert plan.run("--set", "mta/deliver/maxserverconnections=1", "--without", "b.example", "--json") == 0
    value = json.loads(capsys.readouterr().out)
    assert plan.changes == [("mta/deliver/maxserverconnections", "1")]
    assert value["change"] == "mta/deliver/maxserverconnections=1, no answer of b.example"
    assert value["whole"]["delivered"] == 1
    assert value["changed"]["whole"]["delivered"] == 0
    assert plan.run("--without", "b.example") == 0
    assert "With no answer of b.example:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status"),
    [(("color=red",), os.EX_USAGE), (("--without", "none.example"), os.EX_DATAERR), (("--spool", "x"), os.EX_USAGE)],
)
def test_what_makes_no_sense_is_refused(plan: Plan, running: Running, words: tuple[str, ...], status: int) -> None:
    running.put(b"u@b.example")
    with pytest.raises(StartError) as raised:
        plan.run(*words)
    assert raised.value.status == status


def test_gaps_are_told_behind_the_forecast(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    plan.world.offline = ListedQueue(gaps=(Gap("cluster", "unreadable", 1, "/x"),))
    with pytest.raises(StartError) as raised:
        plan.run()
    assert raised.value.status == os.EX_IOERR
    assert capsys.readouterr().out == "Nothing waits that is asked about.\n"


def test_the_program_knows_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "mailismus.xml"
    config.write_text("<mailserver><application><dirpaths><root>.</root></dirpaths></application></mailserver>")
    before = config.read_text()
    words = ["--config", str(config), "plan"]
    assert main([*words, "--set", "mta/deliver/none=1"]) == os.EX_USAGE
    assert "--set" in capsys.readouterr().err
    assert main([*words, "--set", "mta/deliver/maxserverconnections=many"]) == os.EX_CONFIG
    assert f"{config}:" in capsys.readouterr().err
    assert main([*words, "--set", "mta/deliver/maxserverconnections=5"]) == os.EX_CONFIG
    assert "there is no queue" in capsys.readouterr().err
    for wrong in (["--until", "0"], ["--until", "soon"], ["--set", "x"], ["--seed", "0"]):
        with pytest.raises(SystemExit) as raised:
            main([*words, *wrong])
        assert raised.value.code == os.EX_USAGE
    assert config.read_text() == before
