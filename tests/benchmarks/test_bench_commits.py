"""Commits measured: what a closed loop has recorded, the cells of the table, counts, the limits of the goals."""

from __future__ import annotations

import array
import socket
import threading
from pathlib import Path

import attrs
import pytest

from benchmarks.clients.append_loop import Appends
from benchmarks.clients.closed_loop import Answers, Lone, Loop, Refused, wire
from benchmarks.commit_goals import Gap, lone_limit_s
from benchmarks.measure.disk_calls import Counts, Ledger
from benchmarks.measure.sync_calls import Timed, WrittenFile, in_turn, new_files, writes
from benchmarks.results.commit_cells import DEFAULT, SMALL_BYTES, STANDARD, YARDSTICK, Cell, Measured, cells, markdown


def test_a_message_on_the_wire_has_its_size_and_the_final_dot() -> None:
    for size in (64, 100, 4096, 300_000):
        content, end = wire(size)[:size], wire(size)[size:]
        assert (len(content), content[-2:], end) == (size, b"\r\n", b".\r\n")
        assert b"\r\n." not in content


def _script(peer: socket.socket, messages: int, final: bytes) -> None:
    """A server for one connection; `final` answers the last message."""
    with peer, peer.makefile("rwb") as file:

        def say(reply: bytes) -> None:
            file.write(reply)
            file.flush()

        say(b"220 here\r\n")
        file.readline()
        say(b"250-here\r\n250 PIPELINING\r\n")
        for number in range(messages):
            for _ in range(3):
                file.readline()
            say(b"250 Ok\r\n250 Ok\r\n")
            say(b"354 go on\r\n")
            while file.readline() != b".\r\n":
                pass
            say(final if number == messages - 1 else b"250 2.0.0 Ok\r\n")


def _serve(messages: int, final: bytes = b"250 2.0.0 Ok\r\n") -> tuple[int, threading.Thread]:
    listener = socket.create_server(("127.0.0.1", 0))

    def act() -> None:
        with listener:
            _script(listener.accept()[0], messages, final)

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return listener.getsockname()[1], thread


def test_the_closed_loop_records_each_250() -> None:
    port, thread = _serve(3)
    loop = Loop(port, 1, 300_000)
    loop.run(30.0, 3)
    thread.join(10)
    sent, answered = loop.record[::2], loop.record[1::2]
    assert len(sent) == len(answered) == 3
    assert all(one <= other for one, other in zip(sent, answered, strict=True))


def test_a_refusal_ends_the_closed_loop() -> None:
    port, thread = _serve(2, b"451 4.3.0 Not now\r\n")
    with pytest.raises(Refused, match=r"451 4\.3\.0"):
        Loop(port, 1, 4096).run(30.0, 2)
    thread.join(10)


def test_a_lone_client_sends_one_by_one() -> None:
    port, thread = _serve(2, b"451 4.3.0 Not now\r\n")
    with Lone(port, 4096) as client:
        assert client.send() > 0
        with pytest.raises(Refused, match="451"):
            client.send()
    thread.join(10)


def test_answers_are_read_as_recorded(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    path.write_bytes(array.array("d", [1.0, 1.5, 1.2, 2.0, 3.0, 3.1]).tobytes())
    answers = Answers.read(path)
    assert answers.between(1.6, 3.2) == pytest.approx([0.8, 0.1])
    assert answers.longest_gap_s() == pytest.approx(1.1)
    assert Answers((), ()).longest_gap_s() == 0.0


def test_an_append_counts_for_the_windows_that_it_overlaps() -> None:
    appends = Appends((1.0, 2.0, 3.0), (0.5, 0.1, 2.0))
    assert appends.between(1.2, 2.0) == [0.5]
    assert appends.between(2.05, 3.5) == [0.1, 2.0]
    assert appends.between(4.9, 9.0) == [2.0]


def test_the_default_stands_first_and_last_wherever_something_is_compared() -> None:
    found = cells("ext4", ["choices"])
    groups: dict[object, list[str]] = {}
    for cell in found:
        groups.setdefault(cell.surroundings, []).append(cell.choice.name)
    assert len(groups) == 4
    for names in groups.values():
        assert (names[0], names[-1], names.count(DEFAULT)) == (DEFAULT, DEFAULT, 2)
        assert YARDSTICK.name in names
    assert {cell.sessions for cell in cells("xfs", ["base"])} == {1, 10, 50, 500}
    assert all(cell.has_writer for cell in cells("xfs", ["writer"]))


def test_a_choice_is_an_element_of_the_queue() -> None:
    assert STANDARD.queue == ""
    assert YARDSTICK.queue == "<journal><largemsgsize>0</largemsgsize><maxage>0</maxage></journal>"


def test_the_default_measured_twice_is_one_row_and_others_are_told_beside_it() -> None:
    cell = Cell("ext4", 1, SMALL_BYTES)
    runs = [
        Measured(cell, 1.0, (0.001,) * 90, Counts(files=90)),
        Measured(
            attrs.evolve(cell, choice=YARDSTICK), 1.0, (0.004,) * 50, Counts(files=100, directories=50, message_files=50)
        ),
        Measured(cell, 1.0, (0.003,) * 110, Counts(files=110)),
    ]
    *_, first, second = markdown(runs).splitlines()
    assert first == "| ext4, 4 KiB | 1 | default | 100 | 2 | 2 | 1 | 0 |"
    assert second == "| ext4, 4 KiB | 1 | a file for each message | 50 (0.50) | 4 (2) | 4 (2) | 3 | 1 |"


def test_counts_are_seen_by_whoever_maps_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    other, ledger = Ledger(path), Ledger(path)
    for index in (0, 0, 1, 2, 3):
        ledger.add(index)
    assert other.read() == Counts(2, 1, 1, 1)
    assert other.read().barriers == 4
    assert other.read().minus(Counts(1, 1, 0, 0)) == Counts(1, 0, 1, 1)


def test_a_lone_clients_limit_is_three_appends_or_two_milliseconds_more() -> None:
    assert lone_limit_s(0.0002) == pytest.approx(0.0022)
    assert lone_limit_s(0.005) == pytest.approx(0.015)


def test_a_gap_is_judged_beyond_the_longest_append() -> None:
    assert Gap(0.4, 0.3, 5, 1.0).beyond_s == pytest.approx(0.1)


def test_ways_take_turns() -> None:
    order: list[str] = []

    def way(name: str) -> float:
        order.append(name)
        return 0.25

    found = in_turn([lambda: way("one"), lambda: way("other")], 0.0, 3)
    assert order == ["one", "other"] * 2
    assert [timed.took_s for timed in found] == [(0.25,) * 2] * 2
    assert Timed((0.001, 0.002, 0.003)).median_ms == pytest.approx(2)


def test_bare_calls_leave_nothing_behind(tmp_path: Path) -> None:
    assert all(len(timed.took_s) == 2 for timed in writes(tmp_path, 1, 0.0))
    assert all(len(timed.took_s) == 2 for timed in new_files(tmp_path, 3, 0.0))
    assert list(tmp_path.iterdir()) == []


def test_batches_go_round_a_written_file(tmp_path: Path) -> None:
    with WrittenFile(tmp_path / "file", 1 << 20) as file:
        places = [file.place(400_000) for _ in range(4)]
        assert file.path.stat().st_size == 1 << 20
    assert places == [0, 400_000, 0, 400_000]
    assert not file.path.exists()
