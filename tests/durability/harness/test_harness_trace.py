"""A trace is read as it was written, whatever stands in its strings."""

from __future__ import annotations

from tests.durability.harness.trace import Event, Phase, events

LINES = r"""
10 1700000000.000100 openat(AT_FDCWD</w>, "/q/1.mqj", O_RDWR|O_CREAT|O_EXCL, 0600) = 7</q/1.mqj>
10 1700000000.000200 pwritev2(7</q/1.mqj>, [{iov_base="MQJB"}, {iov_base="a\"\\) = 3 \0\377\r\n", iov_len=13}], 2, 0, 0) = 17
10 1700000000.000300 fdatasync(7</q/1.mqj> <unfinished ...>
11 1700000000.000400 sendto(9<socket:[77]>, "250 2.1.0 Ok\r\n", 14, 0, NULL, 0) = 14
10 1700000000.000500 <... fdatasync resumed>) = 0
10 1700000000.000600 fsync(8</q>) = -1 EIO (Input/output error)
10 1700000000.000700 fdatasync(7</q/1.mqj> <unfinished ...>
12 +++ killed by SIGKILL +++
""".strip().splitlines()


def _found() -> list[Event]:
    return list(events(LINES))


def test_calls_begin_and_end_in_the_order_of_the_lines() -> None:
    shown = [(event.phase, event.name, event.result) for event in _found()]
    begin, end = Phase.BEGIN, Phase.END
    assert shown[:4] == [(begin, "openat", 0), (end, "openat", 7), (begin, "pwritev2", 0), (end, "pwritev2", 17)]
    assert shown[4:6] == [(begin, "fdatasync", 0), (begin, "sendto", 0)]
    assert shown[6:8] == [(end, "sendto", 14), (end, "fdatasync", 0)]
    assert shown[8:] == [(begin, "fsync", 0), (end, "fsync", -1), (begin, "fdatasync", 0)]


def test_paths_stand_with_their_descriptors() -> None:
    found = _found()
    assert found[1].made == "/q/1.mqj"
    assert found[3].path == "/q/1.mqj"
    assert found[7].path == "/q/1.mqj"
    assert found[0].path == ""


def test_strings_are_the_bytes_that_were_written() -> None:
    assert _found()[3].strings() == [b"MQJB", b'a"\\) = 3 \0\xff\r\n']
