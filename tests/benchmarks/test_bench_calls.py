"""Calls a message: counted exactly by part, in all threads, and read as a difference of two loads."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import calls as program
from benchmarks.measure import budget
from benchmarks.measure.call_counter import Counter, Parts, name_of
from benchmarks.measure.calls import (
    PYTHON,
    C,
    Calls,
    CountedOther,
    counted,
    functions_table,
    minus,
    parse,
    parts_table,
    short,
)
from benchmarks.results.workloads import WORKLOADS
from benchmarks.stage.running import Loads
from tests.support.processes import TrialError

ROOT = Path(__file__).resolve().parent.parent.parent
WORKED = """
import os, signal, threading, time

def work():
    for _ in range(3):
        time.time()

def snapshot():
    os.kill(os.getpid(), signal.SIGRTMIN + 8)

work()
snapshot()
work()
thread = threading.Thread(target=work)
thread.start()
thread.join()
snapshot()
"""


def run(directory: Path, *arguments: str) -> None:
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, *counted(directory, arguments)], env=environment, check=True, timeout=60)


def count_of(found: dict[tuple[str, str, str], int], kind: str, function: str) -> int:
    return sum(count for (its, label, _), count in found.items() if its == kind and label.startswith(function))


@pytest.mark.parametrize("way", ["code", "script", "module"])
def test_calls_are_counted_exactly_in_all_threads_however_the_program_is_run(tmp_path: Path, way: str) -> None:
    script = tmp_path / "worked.py"
    script.write_text(WORKED)
    if way == "code":
        run(tmp_path, "-c", WORKED)
    elif way == "script":
        run(tmp_path, str(script))
    else:
        package = tmp_path / "path"
        package.mkdir()
        script.rename(package / "worked.py")
        environment = {"PYTHONPATH": f"{ROOT}:{package}", "PATH": "/usr/bin:/bin"}
        argv = [sys.executable, *counted(tmp_path, ["-m", "worked"])]
        subprocess.run(argv, env=environment, check=True, timeout=60)
    first, second = (parse((tmp_path / f"calls.{number}").read_text()) for number in (1, 2))
    assert count_of(first, PYTHON, "work ") == 1
    assert count_of(first, C, "time.time") == 3
    since = minus(second, first)
    assert count_of(since, PYTHON, "work ") == 2
    assert count_of(since, C, "time.time") == 6


def test_the_program_gets_its_own_arguments_and_exit_code(tmp_path: Path) -> None:
    argv = [sys.executable, *counted(tmp_path, ["-c", "import sys; sys.exit(sys.argv[1:] == ['a', '-b'])", "a", "-b"])]
    done = subprocess.run(argv, env={"PYTHONPATH": str(ROOT)}, check=False, timeout=60)
    assert done.returncode == 1


def _frame_of(path: str, name: str) -> Parts:
    parts = Parts()
    namespace: dict[str, object] = {"parts": parts}
    inner = "import sys\ndef inner():\n    return parts.of(sys._getframe())\n"
    exec(compile(inner, "/lib/python3/somewhere.py", "exec"), namespace)
    exec(compile(f"def {name}():\n    return inner()\n", path, "exec"), namespace)
    namespace["found"] = namespace[name]()  # type: ignore[operator]  # a function
    parts.found = namespace["found"]  # type: ignore[attr-defined]  # for the test alone
    return parts


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/somewhere/mailismus/observe/audit.py", budget.LOG),
        ("/somewhere/mailismus/journal/commit.py", budget.JOURNAL),
        ("/somewhere/else.py", budget.REST),
    ],
)
def test_a_function_without_a_rule_belongs_to_its_caller(path: str, part: str) -> None:
    assert _frame_of(path, "outer").found == part  # type: ignore[attr-defined]  # see there


def test_a_counter_leaves_no_profile_behind_where_none_was(tmp_path: Path) -> None:
    before = sys.getprofile()
    Counter(tmp_path).snapshot()
    assert sys.getprofile() is before
    assert parse((tmp_path / "calls.1").read_text()) == {}
    assert not list(tmp_path.glob("*.unfinished"))


def test_functions_in_c_have_the_name_of_their_type_or_module() -> None:
    assert name_of(b"".find) == "bytes.find"
    assert name_of(len) == "len"
    assert name_of(signal.getsignal) != ""
    assert name_of(object()) == "?"


CALLS = Calls(
    {
        (PYTHON, "ServerFraming._parse (/x/mailismus/smtp/server/framing.py:3)", budget.COMMANDS): 5.0,
        (PYTHON, "Connection.doRead (/lib/twisted/internet/tcp.py:9)", budget.RECEIVE): 6.0,
        (C, "bytes.find", budget.COMMANDS): 6.5,
        (C, "bytes.find", budget.BODY): 0.1,
    }
)


def test_receiving_is_shared_out_and_nothing_gets_lost() -> None:
    parts = CALLS.by_part(PYTHON, WORKLOADS["W2"])
    assert parts[budget.COMMANDS] > 5
    assert parts[budget.CLIENT] > 0
    assert sum(parts.values()) == pytest.approx(CALLS.total(PYTHON)) == 11
    assert sum(CALLS.of_parts(WORKLOADS["W2"]).values()) == pytest.approx(17.6)


def test_a_program_that_the_rules_do_not_know_has_no_parts_to_share_receiving_out_to() -> None:
    parts = Calls(CALLS.by_function, has_parts=False).by_part(PYTHON, WORKLOADS["W2"])
    assert parts[budget.REST] == 6
    assert parts[budget.CLIENT] == 0


def test_the_functions_with_most_calls_come_first_with_the_parts_that_call_them() -> None:
    most = CALLS.most(2)
    assert most[0][:2] == ("bytes.find (C)", budget.COMMANDS)
    assert most[0][2] == pytest.approx(6.6)
    assert most[1][0] == "Connection.doRead (twisted/internet/tcp.py)"
    assert short("f (/x/mailismus/net/send.py:30)") == "f (mailismus/net/send.py)"
    assert short("nothing known") == "nothing known"
    assert "| 6.60 |" in functions_table(CALLS, 1)


def test_servers_stand_side_by_side() -> None:
    text = parts_table({"ours": CALLS, "previous": CALLS}, WORKLOADS["W2"])
    assert text.splitlines()[0] == "| part | ours Python | ours C | previous Python | previous C |"
    assert text.splitlines()[-1] == "| all | 11 | 6.60 | 11 | 6.60 |"


def test_a_figure_is_the_difference_of_two_loads() -> None:
    loads = Loads(100, 300)
    found = loads.difference({"start": 7, "call": 100, "gone": 20}, {"start": 7, "call": 500, "new": 100})
    assert found == {"call": 2.0, "gone": -0.1, "new": 0.5}


def test_only_programs_in_python_can_be_counted() -> None:
    with pytest.raises(TrialError, match="Python programs only"):
        CountedOther("/usr/sbin/postfix start-fg --port {port}")


def test_the_summary_has_ratios_to_the_first_server_and_gaps_for_what_was_not_counted() -> None:
    half = Calls({(PYTHON, "f", budget.LOG): 5.5})
    results = program.Results({"W2": {"ours": half, "previous": CALLS}}, {"W2": {"ours": 400_000.0, "previous": 800_000.0}})
    rows = results.summary().splitlines()
    assert rows[2].startswith("| W2 ours | 5.50 | 1.000 | 0 | ")
    assert rows[3] == "| W2 previous | 11 | 0.500 | 6.60 | 0.000 | 800 | 0.500 |"
    assert "| 400 |" in program.Results({}, {"W1": {"ours": 400_000.0}}).summary()
    assert "most calls" in results.markdown(3)
