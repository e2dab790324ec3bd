"""The commands of acts, over a running server with a real socket."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred, succeed

from mailismus.admin.commands import acts as acts_command
from mailismus.admin.protocol.acting import ShownAct
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadPool
from mailismus.errors import StartError
from mailismus.mail.ids import format_spool_id
from mailismus.queue.acts.act import Act, ActKind, ActState, Order
from mailismus.queue.acts.act_file import ActFile
from mailismus.queue.acts.acts import Acts, KeepSettings
from mailismus.queue.interface import Area
from tests.admin.worlds import Running, World


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def acting(running: Running, tmp_path: Path) -> Iterator[Running]:
    """A server with acts."""
    state = tmp_path / "state"
    state.mkdir()
    made: list[Acts] = []

    def begin() -> Deferred[None]:
        worker = ThreadPool(running.reactor, "acts")
        acts = Acts(running.queue.acting, ActFile(PosixDisk(), str(state)), worker, running.reactor, KeepSettings(60.0, 0))
        acts.load()
        acts.start()
        running.task.take_acts(acts)
        made.append(acts)
        return succeed(None)

    running.do(begin)
    yield running
    running.do(made[0].stop)


def areas(running: Running) -> dict[str, int]:
    """How many entries each area has; those without any are left out."""
    summary = running.do(running.queue.summary)
    return {area.value: count.entries for area, count in summary.areas.items() if count.entries}


def test_a_hold_says_what_it_concerns_and_what_it_did(
    world: World, acting: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    acting.put(b"a@x.example", b"b@x.example", b"c@y.example")
    assert world.run("queue", "hold", "domain=x.example", "--reason", "sick") == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 entries of 1 message match",
        "         2  x.example",
        "A1: 2 entries held",
    ]
    assert areas(acting) == {"hold": 2, "incoming": 1}
    assert world.run("queue", "list", "area=hold") == 0
    listed = capsys.readouterr().out
    assert "-1 hold, 0 attempts, until released: held by act A1)" in listed
    assert world.run("queue", "release", "--all", "--reason", "well") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "A2: 2 entries released"
    assert areas(acting) == {"incoming": 3}


def test_a_message_with_entries_in_two_areas_is_one_message(
    world: World, acting: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    assert acting.task._sessions.acts is not None
    acting.task._sessions.acts.reload(KeepSettings(60.0, 1))
    acting.put(b"a@x.example", b"b@y.example")
    assert world.run("queue", "hold", "domain=x.example", "--reason", "sick") == 0
    assert areas(acting) == {"hold": 1, "incoming": 1}
    capsys.readouterr()
    assert world.run("queue", "delete", "sender=*", "--reason", "spam", "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 entries of 1 message match"
    assert lines[-1].startswith("1 B of 1.0 kB are kept")


def test_json_tells_of_what_is_held(world: World, acting: Running, capsys: pytest.CaptureFixture[str]) -> None:
    acting.put(b"a@x.example")
    world.run("queue", "hold", "--all", "--reason", "sick")
    capsys.readouterr()
    world.run("queue", "list", "--json")
    value = json.loads(capsys.readouterr().out)
    assert value["queue_name"] == "hold"
    assert value["recipients"][0]["next_attempt"] is None
    assert value["recipients"][0]["delay_reason"] == "held by act A1"
    world.run("queue", "count", "--json")
    assert json.loads(capsys.readouterr().out)["hold"]["entries"] == 1


def test_deleted_mail_is_listed_where_it_is_asked_for_and_comes_back(
    world: World, acting: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    acting.put(b"a@x.example")
    assert world.run("queue", "delete", "recipient=a@*", "--reason", "spam") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "A1: 1 entry deleted"
    world.run("queue", "list", "domain=x.example")
    assert "No entry matches" in capsys.readouterr().out
    world.run("queue", "list", "area=deleted")
    assert "deleted by act A1, kept for its undoing" in capsys.readouterr().out
    assert world.run("queue", "undo", "a1") == 0
    assert capsys.readouterr().out.splitlines() == ["A1 undone: 1 entry restored"]
    assert areas(acting) == {"incoming": 1}


@pytest.mark.parametrize(
    ("keep", "told"),
    [
        (KeepSettings(60.0, 0), None),
        (KeepSettings(60.0, 10**6), None),
        (
            KeepSettings(0.0, 10**6),
            "nothing of it is kept, by <undo> and <undospace>: it is gone at once, and can't be undone",
        ),
        (KeepSettings(60.0, 7), "7 B of 1.0 kB are kept, by <undospace>: the rest is gone at once, and can't be undone"),
    ],
)
def test_a_deletion_says_before_what_no_undoing_brings_back(
    world: World, acting: Running, capsys: pytest.CaptureFixture[str], keep: KeepSettings, told: str | None
) -> None:
    assert acting.task._sessions.acts is not None
    acting.task._sessions.acts.reload(keep)
    acting.put(b"a@x.example", b"b@x.example")
    for words in (("delete",), ("delete", "--limit", "1"), ("hold",)):
        assert world.run("queue", *words, "--all", "--reason", "x", "--dry-run") == 0
        lines = capsys.readouterr().out.splitlines()
        wanted = told if words[0] == "delete" and ("--limit" not in words or not keep.kept_s) else None
        assert lines[2 + ("--limit" in words) :] == ([] if wanted is None else [wanted]), words


def test_an_act_that_is_undone_again_tells_what_came_back_now(
    world: World, acting: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    acting.put(b"a@x.example")
    world.run("queue", "hold", "--all", "--reason", "sick")
    world.run("queue", "undo", "A1")
    capsys.readouterr()
    assert world.run("queue", "undo", "A1") == 0
    assert capsys.readouterr().out == "A1 undone: 0 entries restored now, 1 in all\n"


def test_acts_are_listed(world: World, acting: Running, capsys: pytest.CaptureFixture[str]) -> None:
    world.run("queue", "acts")
    assert capsys.readouterr().out == "No act is on record\n"
    acting.put(b"a@x.example")
    world.run("queue", "hold", "domain=x.example", "--for", "2h", "--reason", "why \x1b[2J not")
    world.run("queue", "undo", "A1")
    capsys.readouterr()
    world.run("queue", "acts")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("A1     ")
    assert "hold, undone, by " in lines[0]
    assert lines[1].startswith("       1 entry of 1 message, 1 restored by ")
    assert ", until " in lines[1]
    assert lines[2].startswith("       domain=x.example: why ")
    assert "\x1b" not in "".join(lines)
    world.run("queue", "acts", "--json")
    value = json.loads(capsys.readouterr().out)
    assert (value["act"], value["kind"], value["state"], value["restored"]) == ("A1", "hold", "undone", 1)
    assert value["filter"] == ["domain=x.example"]
    assert value["until"] - value["begun"] == 7200


def test_a_dry_run_changes_nothing(world: World, acting: Running, capsys: pytest.CaptureFixture[str]) -> None:
    acting.put(*(b"a@x%02d.example" % number for number in range(25)))
    assert world.run("queue", "bounce", "--all", "--dry-run", "--reason", "try") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "25 entries of 1 message match"
    assert len(lines) == 22
    assert lines[-1] == "         5  (in 5 more domains)"
    assert areas(acting) == {"incoming": 25}
    world.run("queue", "acts")
    assert capsys.readouterr().out == "No act is on record\n"


def test_what_is_out_is_told(world: World, acting: Running, capsys: pytest.CaptureFixture[str]) -> None:
    acting.put(b"a@x.example", b"b@x.example")
    acting.do(lambda: acting.queue.take(Area.INCOMING, 1))
    world.run("queue", "hold", "--all", "--reason", "sick")
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "A1: 1 entry held",
        "1 more is out for delivery: if it comes back, it is held then",
    ]
    world.run("queue", "acts")
    assert "hold, waiting for deliveries for 1, by " in capsys.readouterr().out


def test_what_left_between_the_count_and_the_act_is_told(
    world: World, acting: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    act = Act(1, Order(ActKind.HOLD, 0, (), "sick"), 1.0, ActState.WAITING, entries=1)
    monkeypatch.setattr(acts_command, "act", lambda *arguments, **more: (one for one in [ShownAct(act, waiting=1)]))
    acting.put(*(b"a%d@x.example" % number for number in range(5)))
    assert world.run("queue", "hold", "--all", "--reason", "sick") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3 of those that matched had left or changed before it came to them"
    assert world.run("queue", "hold", "--all", "--reason", "sick", "--limit", "2") == 0
    assert "had left" not in capsys.readouterr().out


def test_a_limit_is_told_before_the_act(world: World, acting: Running, capsys: pytest.CaptureFixture[str]) -> None:
    acting.put(b"a@x.example", b"b@x.example")
    assert world.run("queue", "hold", "--all", "--reason", "sick", "--limit", "1", "--dry-run") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "at most 1 of them, by --limit"
    assert world.run("queue", "hold", "--all", "--reason", "sick", "--limit", "2", "--dry-run") == 0
    assert "--limit" not in capsys.readouterr().out


def test_a_hold_for_a_time_says_until_when(world: World, acting: Running, capsys: pytest.CaptureFixture[str]) -> None:
    acting.put(b"a@x.example")
    world.run("queue", "hold", "--all", "--for", "2h", "--reason", "sick")
    (until,) = re.findall(
        r"^A1: 1 entry held until (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)$", capsys.readouterr().out, re.MULTILINE
    )
    world.run("queue", "acts")
    assert f", until {until}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "name", "told"),
    [
        (
            ("hold", "--all", "--reason", "sick"),
            "act",
            "A1 is interrupted; to go on: mailismus queue acts --resume A1; to take it back: mailismus queue undo A1",
        ),
        (("undo", "A1"), "go_on", "The undoing of A1 is interrupted; to go on: mailismus queue undo A1"),
    ],
)
def test_ctrl_c_says_how_to_go_on(
    world: World,
    acting: Running,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    name: str,
    told: str,
) -> None:
    real: Callable[..., Generator[ShownAct, None, None]] = getattr(acts_command, name)

    def interrupted(*arguments: object, **more: object) -> Iterator[ShownAct]:
        yield next(real(*arguments, **more))
        raise KeyboardInterrupt

    acting.put(b"a@x.example")
    if name == "go_on":
        world.run("queue", "hold", "--all", "--reason", "sick")
    monkeypatch.setattr(acts_command, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        world.run("queue", *words)
    assert capsys.readouterr().out.splitlines()[-1] == told


@pytest.mark.parametrize(
    ("words", "name", "state", "said", "told"),
    [
        (
            ("hold", "--all", "--reason", "sick"),
            "act",
            ActState.RUNNING,
            "A1: 0 entries held",
            "A1 is not complete: the server stops, and its next start goes on",
        ),
        (
            ("hold", "--all", "--reason", "sick"),
            "act",
            ActState.INTERRUPTED,
            "A1: 0 entries held",
            "A1 is interrupted; to go on: mailismus queue acts --resume A1; to take it back: mailismus queue undo A1",
        ),
        (
            ("undo", "A1"),
            "go_on",
            ActState.UNDOING,
            "A1 being undone: 0 entries restored so far",
            "The undoing of A1 is interrupted; to go on: mailismus queue undo A1",
        ),
    ],
)
def test_what_is_not_complete_is_no_success(
    world: World,
    acting: Running,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    name: str,
    state: ActState,
    said: str,
    told: str,
) -> None:
    act = Act(1, Order(ActKind.HOLD, 0, (), "sick"), 1.0, state)
    monkeypatch.setattr(acts_command, name, lambda *arguments, **more: (one for one in [ShownAct(act)]))
    assert world.refusal("queue", *words) == (75, told)
    assert capsys.readouterr().out.splitlines()[-1] == said


def test_a_server_that_goes_away_leaves_a_word_about_the_act(
    world: World, acting: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object, **more: object) -> Iterator[ShownAct]:
        yield ShownAct(Act(1, Order(ActKind.HOLD, 0, (), "sick"), 1.0))
        raise StartError(69, "it is gone")

    out = Terminal()
    monkeypatch.setattr(acts_command, "act", broken)
    monkeypatch.setattr(sys, "stdout", out)
    assert world.refusal("queue", "hold", "--all", "--reason", "sick") == (69, "it is gone")
    *_, progress, last = out.getvalue().split("\r")
    assert progress.strip() == ""  # no progress is left in front of the words
    assert last == "A1 is not complete; how far it has come: mailismus queue acts\n"


def test_ctrl_c_and_ctrl_d_at_the_question_change_nothing(
    world: World, acting: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(size: int = -1) -> str:
        raise KeyboardInterrupt

    interrupted = Terminal()
    monkeypatch.setattr(interrupted, "readline", interrupt)
    acting.put(*(b"a%d@x.example" % number for number in range(101)))
    for answers in (interrupted, Terminal("")):
        out = Terminal()
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stdin", answers)
        if answers is interrupted:
            with pytest.raises(KeyboardInterrupt):
                world.run("queue", "hold", "--all", "--reason", "sick")
        else:
            world.run("queue", "hold", "--all", "--reason", "sick")
        assert out.getvalue().endswith("[y/N] \nNothing was changed.\n")
    assert areas(acting) == {"incoming": 101}


@pytest.mark.parametrize(("answer", "held"), [("y\n", 101), ("n\n", 0), ("", 0)])
def test_a_terminal_is_asked_where_many_match(
    world: World, acting: Running, monkeypatch: pytest.MonkeyPatch, answer: str, held: int
) -> None:
    acting.put(*(b"a%d@x.example" % number for number in range(101)))
    out, answers = Terminal(), Terminal(answer)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stdin", answers)
    assert world.run("queue", "hold", "--all", "--reason", "sick") == 0
    assert "hold 101 entries? [y/N]" in out.getvalue()
    assert areas(acting).get("hold", 0) == held


def test_yes_a_limit_and_a_pipe_are_answers(world: World, acting: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    acting.put(*(b"a%d@x.example" % number for number in range(150)))
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(sys, "stdin", Terminal("no\n"))
    world.run("queue", "hold", "--all", "--reason", "sick", "--limit", "20")
    assert areas(acting)["hold"] == 20
    world.run("queue", "hold", "--all", "--reason", "sick", "--yes")
    assert areas(acting) == {"hold": 150}
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    world.run("queue", "release", "--all", "--reason", "well")
    assert areas(acting) == {"incoming": 150}


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("hold", "--reason", "x"), 64, "queue hold: write a FILTER, or --all for everything"),
        (("hold", "--all", "older=1h", "--reason", "x"), 64, "--all is for everything"),
        (("hold", "colour=red", "--reason", "x"), 64, '"colour=red" is no filter'),
        (("undo", "A9"), 65, "there is no act A9"),
        (("acts", "--resume", "A9"), 65, "there is no act A9"),
    ],
)
def test_what_is_wrong_is_refused(world: World, acting: Running, words: tuple[str, ...], status: int, text: str) -> None:
    found = world.refusal("queue", *words)
    assert found[0] == status
    assert text in found[1]


@pytest.mark.parametrize(
    "words",
    [
        ("hold", "--all"),
        ("hold", "--all", "--reason", " "),
        ("hold", "--all", "--reason", "x", "--for", "0"),
        ("hold", "--all", "--reason", "x", "--limit", "0"),
        ("release", "--all", "--reason", "x", "--for", "2h"),
        ("undo", "7"),
        ("undo",),
    ],
)
def test_a_command_line_that_is_wrong_ends_it(world: World, words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        world.run("queue", *words)
    assert ended.value.code == 2


def test_without_a_server_the_stopped_queue_is_asked(world: World) -> None:
    assert world.refusal("queue", "hold", "--all", "--reason", "x") == (75, "another process holds the queue")
    assert world.refusal("queue", "acts")[0] == 75


def test_a_queue_without_a_record_has_no_acts(world: World, running: Running) -> None:
    assert world.refusal("queue", "acts") == (69, "this queue keeps no record of acts, so there are none")


def test_a_redirection_is_told_everywhere_and_undone(
    world: World, acting: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    spool_id = acting.put(b"a@x.example", b"b@y.example")
    assert world.run("queue", "redirect", "domain=x.example", "--to", "[2001:db8::1]:2525", "--reason", "down") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "A1: 1 entry redirected"
    said = "redirected to [2001:db8::1]:2525 by act A1"
    listing = ("queue", "list"), ("queue", "list", "--json"), ("queue", "why", "x.example")
    for command in listing:
        world.run(*command)
        assert capsys.readouterr().out.count(said) == 1, command
    world.run("queue", "show", format_spool_id(spool_id))
    assert "redirected:   [2001:db8::1]:2525, by act A1\n" in capsys.readouterr().out
    world.run("queue", "acts")
    assert ", to [2001:db8::1]:2525\n" in capsys.readouterr().out
    world.run("queue", "acts", "--json")
    assert json.loads(capsys.readouterr().out)["relay"] == "[2001:db8::1]:2525"
    assert world.run("queue", "undo", "A1") == 0
    assert capsys.readouterr().out == "A1 undone: 1 entry restored\n"
    world.run("queue", "list")
    assert "redirected" not in capsys.readouterr().out


def test_another_recipient_is_told_everywhere_and_undone(
    world: World, acting: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    spool_id = acting.put(b"a@x.example", b"b@y.example")
    words = ("--to", "jürgen@z.example", "--reason", "left")
    assert world.run("queue", "redirect", "domain=x.example", *words, "--dry-run") == 0
    assert capsys.readouterr().out.startswith("1 entry of 1 message match")
    assert world.run("queue", "redirect", "domain=x.example", *words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "A1: 1 entry redirected"
    assert world.run("queue", "redirect", "--all", *words, "--dry-run") == 0
    assert capsys.readouterr().out == "1 entry of 1 message match\n         1  y.example\n"
    said = "redirected from a@x.example by act A1"
    for command in (("list",), ("list", "domain=z.example"), ("why", "a@x.example"), ("why", "jürgen@z.example")):
        world.run("queue", *command)
        found = capsys.readouterr().out
        assert found.count(said) == found.count("jürgen@z.example") == 1, command
    world.run("queue", "list", "--json", "domain=z.example")
    (recipient,) = json.loads(capsys.readouterr().out)["recipients"]
    assert (recipient["address"], recipient["orig_address"]) == ("jürgen@z.example", "a@x.example")
    world.run("queue", "why", "--json", "a@x.example")
    assert json.loads(capsys.readouterr().out)["orig_address"] == "a@x.example"
    world.run("queue", "show", format_spool_id(spool_id))
    shown = capsys.readouterr().out
    assert "recipient:    <jürgen@z.example>\noriginally:   <a@x.example>\n" in shown
    assert "redirected:   jürgen@z.example, by act A1\n" in shown
    world.run("queue", "shape")
    assert "z.example" in capsys.readouterr().out
    world.run("queue", "acts")
    assert ", to jürgen@z.example\n" in capsys.readouterr().out
    world.run("queue", "acts", "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["relay"], told["recipient"]) == (None, "jürgen@z.example")
    assert world.run("queue", "undo", "A1") == 0
    assert capsys.readouterr().out == "A1 undone: 1 entry restored\n"
    world.run("queue", "list")
    assert "jürgen" not in capsys.readouterr().out


def test_a_rule_for_mail_to_come_is_told_listed_and_undone(
    world: World, acting: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    acting.put(b"a@x.example")
    words = ("domain=x.example", "--for", "2h", "--reason", "sick")
    assert world.run("queue", "hold", "--incoming", *words) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("A1: mail to come to this server that matches is held from now on, until ")
    assert line.endswith("; to end it: mailismus queue undo A1")
    assert areas(acting) == {"incoming": 1}
    acting.put(b"b@x.example", b"c@y.example")
    assert areas(acting) == {"incoming": 2, "hold": 1}
    world.run("queue", "list", "area=hold")
    assert "held by act A1)" in capsys.readouterr().out
    world.run("queue", "acts")
    lines = capsys.readouterr().out.splitlines()
    assert "hold-incoming, in force, by " in lines[0]
    assert lines[1].startswith("       1 entry of 1 message, until ")
    assert lines[2] == "       domain=x.example: sick"
    world.run("queue", "acts", "--json")
    value = json.loads(capsys.readouterr().out)
    assert (value["kind"], value["state"], value["entries"]) == ("hold-incoming", "in force", 1)
    assert value["until"] - value["begun"] == 7200
    assert world.run("queue", "undo", "A1") == 0
    assert capsys.readouterr().out == "A1 undone: 1 entry restored\n"
    acting.put(b"d@x.example")
    assert areas(acting) == {"incoming": 4}


def test_everything_to_come_may_be_held(world: World, acting: Running) -> None:
    assert world.run("queue", "hold", "--incoming", "--all", "--reason", "move") == 0
    acting.put(b"a@x.example")
    assert areas(acting) == {"hold": 1}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "queue hold: write a FILTER, or --all for everything"),
        (("older=1h",), '"older=1h" selects no mail to come: write sender=GLOB, recipient=GLOB, domain=GLOB, client=GLOB'),
        (("area=incoming",), "selects no mail to come"),
        (("reply=no",), "selects no mail to come"),
        (("000000010000002A",), "selects no mail to come"),
        (("larger=much",), '"larger=much"'),
        (("domain=x.example", "--dry-run"), "--dry-run and --limit are for mail that is here"),
        (("domain=x.example", "--limit", "5"), "--dry-run and --limit are for mail that is here"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(world: World, acting: Running, words: tuple[str, ...], text: str) -> None:
    found = world.refusal("queue", "hold", "--incoming", *words, "--reason", "x")
    assert found[0] == 64
    assert text in found[1]
