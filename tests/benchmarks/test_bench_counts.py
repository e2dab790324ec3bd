"""Instructions, system calls, copies and passes: what the tools write is read right, and a growth is seen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import content, guard
from benchmarks.content import PAIRS, Way
from benchmarks.guard import ALL, Compared, Figure, compare, least, markdown
from benchmarks.measure import copies, passes, system_calls
from benchmarks.measure.instructions import Dump
from benchmarks.measure.passes import Pass
from benchmarks.measure.system_calls import SystemCalls, bytes_moved, kind_of, kinds_table
from benchmarks.stage.contenders import check_out, contenders
from benchmarks.stage.directories import Stage
from tests.support.processes import TrialError

ROOT = Path(__file__).resolve().parent.parent.parent
DUMP = """\
# callgrind format
positions: line
events: Ir
summary: 1300

ob=(5) /lib/libpython3.11.so
fl=(1) /src/bytesobject.c
fn=(10) bytes_find
12 100
+2 50
cob=(6) /lib/libc.so
cfi=(2) memchr.S
cfn=(20) memchr
calls=4 300
14 900
fn=(20)
300 900
* 250

totals: 1300
"""


def test_a_dump_gives_the_instructions_of_functions_and_of_what_they_call() -> None:
    dump = Dump.parse(DUMP.splitlines(keepends=True))
    assert dump.total == 1300
    assert dump.own == {"bytes_find": 150, "memchr": 1150}
    assert dump.called == {("memchr", "bytes_find"): 900}


TRACE = """\
100 1000.000001 epoll_wait(3, [], 11, 0) = 0
100 1000.100000 recvfrom(7, ""..., 65536, 0, NULL, NULL) = 4096
100 1000.150000 recvfrom(7, 0x7f, 65536, 0, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable)
101 1000.200000 fdatasync(9 <unfinished ...>
100 1000.210000 sendto(7, ""..., 30, MSG_NOSIGNAL, NULL, 0) = 30
101 1000.300000 <... fdatasync resumed>) = 0
100 1000.400000 epoll_ctl(3, EPOLL_CTL_ADD, 8, {events=EPOLLIN, data={u32=8, u64=8}}) = 0
100 1000.500000 getsockopt(8, SOL_SOCKET, SO_ERROR, [0], [4]) = 0
101 1000.600000 pwritev2(9, [{iov_base=""..., iov_len=8192}], 1, 4096, 0 <unfinished ...>
101 1000.700000 <... pwritev2 resumed>) = 8192
100 1002.000000 recvfrom(7, ""..., 65536, 0, NULL, NULL) = 1
100 1002.100000 read(5, ""..., 4096) = 100
100 +++ exited with 0 +++
"""


def test_system_calls_are_counted_by_kind_in_the_span_in_which_they_begin() -> None:
    first, second = system_calls.count(TRACE.splitlines(), [(1000.0, 1001.0), (1001.0, 1003.0)])
    assert first == {
        "epoll_wait": 1,
        "recvfrom": 1,
        "recvfrom EAGAIN": 1,
        "fdatasync": 1,
        "sendto": 1,
        "epoll_ctl add": 1,
        "getsockopt SO_ERROR": 1,
        "pwritev2": 1,
    }
    assert second == {"recvfrom": 1, "read": 1}


def test_bytes_between_process_and_kernel_are_what_the_calls_returned() -> None:
    assert bytes_moved(TRACE.splitlines(), (1000.0, 1001.0)) == {
        system_calls.RECEIVED: 4096,
        system_calls.SENT: 30,
        system_calls.WRITTEN: 8192,
    }
    assert bytes_moved(TRACE.splitlines(), (1001.0, 1003.0)) == {system_calls.RECEIVED: 1, system_calls.READ: 100}


def test_the_table_of_kinds_puts_rare_ones_together_and_tells_what_failed() -> None:
    ours = SystemCalls({"recvfrom": 3.0, "recvfrom EAGAIN": 0.5, "brk": 0.01})
    other = SystemCalls({"recvfrom": 2.0, "write": 0.5})
    rows = kinds_table({"ours": ours, "other": other}).splitlines()
    assert rows[0] == "| system call | ours | other |"
    assert rows[2] == "| recvfrom | 3 | 2 |"
    assert "| others | 0.010 | 0 |" in rows
    assert rows[-2:] == ["| all | 3.51 | 2.50 |", "| of them failed | 0.50 | 0 |"]
    assert kind_of("ioctl", "7, FIONBIO, [1]) = 0") == "ioctl FIONBIO"


def test_copies_are_told_by_the_functions_that_had_them_made() -> None:
    frames = ["[root]", "0x1: memmove (in /x.so)", "0x2: bytes_join (join.h:3)", "0x3: _PyEval_EvalFrameDefault (c.c:1)"]
    points = [{"tb": 700, "fs": [1, 2, 3]}, {"tb": 50, "fs": [1, 2]}, {"tb": 9, "fs": [1, 3]}]
    found = copies.parse(json.dumps({"pps": points, "ftbl": frames}))
    assert found == {"bytes_join": 750, "interpreter": 9}


def test_content_is_told_from_the_rest_by_two_sizes() -> None:
    pair = PAIRS[0]
    more = pair.messages * (pair.large_bytes - pair.small_bytes)
    assert pair.difference({"join": 500, "start": 77}, {"join": 500 + 2 * more, "start": 77}) == {"join": 2.0, "start": 0.0}
    assert pair.small_bytes < pair.large_bytes <= 128 * 1024 < PAIRS[1].small_bytes < PAIRS[1].large_bytes


def test_passes_are_instructions_a_byte_by_those_of_one_look() -> None:
    costs = {"crc32_z": Pass("zlib.crc32", 4.0), "bytes_lower": Pass("bytes.lower", 8.0)}
    found = passes.passes({"crc32_z": 8.0, "free": 3.0}, costs)
    assert found == {"crc32_z": 2.0}


def test_the_operations_are_carried_out_one_for_each_line() -> None:
    argv = [sys.executable, "-m", "benchmarks.measure.passes"]
    lines = "".join(f"{name}\n" for name in ("", *passes.OPERATIONS))
    done = subprocess.run(argv, input=lines, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True)
    assert done.stdout == "done\n" * (len(passes.OPERATIONS) + 1)


def test_the_way_out_is_what_the_whole_way_needs_more_than_the_way_in() -> None:
    figures = {Way.IN: {"crc": 1.0, "scan": 1.0}, Way.BOTH: {"crc": 2.0, "scan": 1.0, "read": 1.0}}
    assert content.out(figures) == {"crc": (1.0, 1.0), "scan": (1.0, 0.0), "read": (0.0, 1.0)}
    text = content.section(figures, figures, figures, {"crc": Pass("zlib.crc32", 1.0)}, {"zlib.crc32": {"journal share"}})
    assert "| crc | 1 | 1 | zlib.crc32, 1 instructions a byte; called in: journal share |" in text
    assert "| all | 2 | 2 |  |" in text


def test_a_pass_is_ascribed_to_the_parts_that_call_more_often_for_more_content() -> None:
    small = {("c", "bytes.find", "body"): 10, ("c", "bytes.find", "client"): 10, ("c", "zlib.crc32", "journal"): 10}
    large = {("c", "bytes.find", "body"): 30, ("c", "bytes.find", "client"): 10, ("c", "zlib.crc32", "journal"): 10}
    assert content.parts_calling(small, large, 5) == {"bytes.find": {"body"}, "zlib.crc32": {"journal"}}


def test_only_growth_by_a_share_and_by_more_than_a_few_batches_is_told() -> None:
    key = ("W1", Figure.CALLS, "log")
    assert Compared(key, 40.0, 42.0).has_grown
    assert not Compared(key, 400.0, 406.0).has_grown
    assert not Compared(key, 2.0, 2.9).has_grown
    assert not Compared(key, 40.0, 30.0).has_grown
    assert Compared(key, 0.0, 5.0).has_grown
    assert Compared(key, 0.0, 5.0).row() == ["W1", "calls", "log", "0", "5", "-", "**grew**"]


def test_calls_that_wait_are_not_judged_and_errors_are_no_kinds_of_their_own() -> None:
    by_kind = {"futex": 3.0, "futex EAGAIN": 1.0, "epoll_wait": 2.0, "epoll_ctl add": 1.0, "shutdown": 0.5}
    found = guard.judged({**by_kind, "shutdown ENOTCONN": 0.75, "getsockopt SO_ERROR": 1.0})
    assert found == {"shutdown": 1.25, "epoll_ctl add": 1.0, "getsockopt SO_ERROR": 1.0}
    assert next(iter(found)) == "shutdown"


def test_instructions_may_differ_more_than_calls() -> None:
    key = ("W1", Figure.INSTRUCTIONS, ALL)
    assert not Compared(key, 1000.0, 1040.0).has_grown
    assert Compared(key, 1000.0, 1060.0).has_grown


def test_trees_are_compared_key_by_key_and_a_sum_is_shown_although_nothing_grew() -> None:
    key, gone = ("W1", Figure.SYSTEM_CALLS, ALL), ("W1", Figure.SYSTEM_CALLS, "brk")
    before = least([{key: 12.0, gone: 1.0}, {key: 11.0}])
    assert before == {key: 11.0, gone: 0.0}
    text = markdown([compare(before, {key: 11.1})])
    assert "| W1 | system calls | all | 11 | 11.1 | 1.009 |  |" in text
    assert "Grown" not in text
    assert "Grown" in markdown([compare(before, {key: 12.0})])


def test_the_guard_says_when_it_could_not_count(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert guard.main(["no-such-revision", "--directory", str(tmp_path)]) == 1
    assert "stopped: " in capsys.readouterr().err


def test_a_revision_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match="git archive"):
        check_out("no-such-revision", tmp_path)
    names = [server.name for server in contenders(Stage(tmp_path, tmp_path), None, "other {port}")]
    assert names == ["ours", "other"]
