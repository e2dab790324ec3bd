"""TLS sessions that may be resumed: for how long, how many, and by whom."""

from __future__ import annotations

from mailismus.net.tls_sessions import KEPT_S, TlsSessions


def test_a_session_is_kept_for_an_hour_after_its_whole_handshake() -> None:
    sessions: TlsSessions[str] = TlsSessions()
    sessions.keep("key", "first", 0.0)
    sessions.keep("key", "second", KEPT_S / 2, resumed="first")
    assert sessions.of("key", KEPT_S) == "second"
    assert sessions.of("key", KEPT_S + 1) is None


def test_sessions_whose_hour_is_over_go_though_nobody_asks_for_them() -> None:
    sessions: TlsSessions[str] = TlsSessions()
    for number in range(100):
        sessions.keep(number, "old", float(number))
    sessions.keep("key", "new", KEPT_S + 50)
    assert len(sessions) == 51
    assert sessions.of("key", KEPT_S + 200) == "new"
    assert len(sessions) == 1


def test_the_oldest_goes_where_there_are_too_many() -> None:
    sessions: TlsSessions[int] = TlsSessions(3)
    for number in range(5):
        sessions.keep(number, number, 0.0)
    assert [sessions.of(number, 1.0) for number in range(5)] == [None, None, 2, 3, 4]
