"""The state machines of the engines: the tables, their drawings, and that nothing but one method sets a state."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import mailismus
from mailismus.mail.reply import Reply
from mailismus.smtp.auth import exchange
from mailismus.smtp.auth.exchange import ExchangeEvent, ExchangeState
from mailismus.smtp.client import lmtp_state
from mailismus.smtp.client import state as client_state
from mailismus.smtp.client import transaction as client_transaction
from mailismus.smtp.client.state import END_STATES, OPENING_STATES, ClientEvent, ClientState
from mailismus.smtp.client.transaction import Phase, PhaseEvent
from mailismus.smtp.server import state as server_state
from mailismus.smtp.server.commands import actions_of
from mailismus.smtp.server.engine import COMMANDS, ServerEngine
from mailismus.smtp.server.limits import Security, ServerLimits
from mailismus.smtp.server.state import ServerEvent, ServerState
from mailismus.smtp.transitions import IllegalTransition
from tests.fakes.transactions import ACCEPTED, Letter, LmtpRecorder, RecordingOwner, opened
from tests.smtp.test_server_dialogues import Recorder

Table = Mapping[enum.Enum, Mapping[enum.Enum, enum.Enum]]
SMTP_STATES = [state for state in ClientState if state is not ClientState.LHLO]
SMTP_EVENTS = [event for event in ClientEvent if event is not ClientEvent.LHLO_SENT]
LMTP_STATES = [
    *(ClientState.GREETING, ClientState.LHLO, ClientState.OPEN, ClientState.STOPPING, ClientState.UNUSABLE),
    ClientState.ENDED,
]
LMTP_EVENTS = [ClientEvent.LHLO_SENT, ClientEvent.OPENED, ClientEvent.STOP, ClientEvent.END]
MACHINES: dict[str, tuple[Any, Iterable[Any], Iterable[Any]]] = {
    "server": (server_state, ServerState, ServerEvent),
    "client": (client_state, SMTP_STATES, SMTP_EVENTS),
    "lmtp client": (lmtp_state, LMTP_STATES, LMTP_EVENTS),
    "transaction": (client_transaction, Phase, PhaseEvent),
    "exchange": (exchange, ExchangeState, ExchangeEvent),
}


def draw(table: Table, events: Iterable[enum.Enum]) -> str:
    """The table as it stands in a docstring: a line for each event and next state."""
    rows = [("event", "from", "to")]
    for event in events:
        for after in dict.fromkeys(row[event] for row in table.values() if event in row):
            rows.append(
                (event.name, " ".join(state.name for state, row in table.items() if row.get(event) is after), after.name)
            )
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "".join(f"    {a:{first}}  {b:{second}}  {c}\n" for a, b, c in rows)


@pytest.mark.parametrize("name", MACHINES)
def test_the_drawing_in_the_docstring_is_the_table(name: str) -> None:
    module, _, events = MACHINES[name]
    assert draw(module.TRANSITIONS, events) in (module.__doc__ or "")


@pytest.mark.parametrize("name", MACHINES)
def test_each_state_has_a_row_and_each_event_and_state_is_used(name: str) -> None:
    module, states, events = MACHINES[name]
    table: Table = module.TRANSITIONS
    assert list(table) == list(states)
    assert {event for row in table.values() for event in row} == set(events)
    assert {after for row in table.values() for after in row.values()} | {next(iter(states))} == set(states)


def test_a_transaction_in_doubt_is_ended_by_its_reply_alone_and_never_begun_again() -> None:
    table = client_transaction.TRANSITIONS
    assert table[Phase.IN_DOUBT] == {PhaseEvent.DOT_ANSWERED: Phase.OVER}
    assert [phase for phase in Phase if Phase.IN_DOUBT in table[phase].values()] == [Phase.CONTENT]
    assert [phase for phase in Phase if PhaseEvent.UNTRIED in table[phase]] == [Phase.ASKED, Phase.ANSWERED, Phase.CONTENT]


def test_an_end_has_no_way_out() -> None:
    tables = (client_state.TRANSITIONS, lmtp_state.TRANSITIONS)
    for table in tables:
        assert {state for state, row in table.items() if not row} == END_STATES
    opening = {s for table in tables for s, row in table.items() if row.get(ClientEvent.END) is ClientState.UNUSABLE}
    assert opening == OPENING_STATES
    assert [state for state, row in server_state.TRANSITIONS.items() if not row] == [ServerState.CLOSED]


def test_content_is_reached_through_hello_mail_rcpt_and_data_alone() -> None:
    table = server_state.TRANSITIONS
    into = [(state, event) for state, row in table.items() for event, after in row.items() if after is ServerState.CONTENT]
    assert into == [(ServerState.RECIPIENTS, ServerEvent.DATA_ACCEPTED)]
    into = [
        (state, event) for state, row in table.items() for event, after in row.items() if after is ServerState.RECIPIENTS
    ]
    assert into == [(ServerState.SENDER, ServerEvent.RCPT_ACCEPTED)]
    assert ServerEvent.MAIL_ACCEPTED not in table[ServerState.FRESH]


# An event that the table does not have.


@pytest.mark.parametrize("state", ServerState)
@pytest.mark.parametrize("event", ServerEvent)
def test_the_server_takes_the_events_of_its_table_and_no_others(state: ServerState, event: ServerEvent) -> None:
    server = ServerEngine(ServerLimits(b"mx.example", 0, 0), Recorder())
    server.state = state
    after = server_state.TRANSITIONS[state].get(event)
    if after is None:
        with pytest.raises(
            IllegalTransition, match=rf"ServerState.{state.name} has no transition for ServerEvent.{event.name}: "
        ):
            server._move(event)
    else:
        server._move(event)
    assert server.state is (after or state)


@pytest.mark.parametrize("owner", [RecordingOwner, LmtpRecorder])
@pytest.mark.parametrize("state", ClientState)
@pytest.mark.parametrize("event", ClientEvent)
def test_the_client_takes_the_events_of_its_table_and_no_others(
    owner: type[RecordingOwner], state: ClientState, event: ClientEvent
) -> None:
    client = owner().client
    client.state = state
    table = client_state.TRANSITIONS if owner is RecordingOwner else lmtp_state.TRANSITIONS
    after = table.get(state, {}).get(event)
    if after is None:
        with pytest.raises(IllegalTransition):
            client._move(event)
    else:
        client._move(event)
    assert client.state is (after or state)


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("event", PhaseEvent)
def test_a_transaction_takes_the_events_of_its_table_and_no_others(phase: Phase, event: PhaseEvent) -> None:
    letter = Letter("A")
    letter.phase = phase
    after = client_transaction.TRANSITIONS[phase].get(event)
    if after is None:
        with pytest.raises(IllegalTransition):
            letter.move(event)
    else:
        letter.move(event)
    assert letter.phase is (after or phase)


def test_a_message_in_doubt_is_not_rewound() -> None:
    letter = Letter("A")
    opened(letter).client.receive(ACCEPTED)
    with pytest.raises(IllegalTransition, match="please report"):
        letter.renew()


def test_tls_completes_once_and_not_after_the_end() -> None:
    server = ServerEngine(ServerLimits(b"mx.example", 0, 0, Security.FIRST), Recorder())
    server.begin_secure()
    with pytest.raises(IllegalTransition):
        server.begin_secure()
    server.close()
    with pytest.raises(IllegalTransition):
        server.begin_secure()


def test_content_that_is_spoilt_late_changes_nothing() -> None:
    owner = opened(Letter("A", content=None))
    owner.client.receive(ACCEPTED)
    owner.client.lost(b"connection lost")
    owner.client.spoil_content(Reply(451, b"4.3.0", b"unreadable"))
    owner.client.end_content()
    assert owner.fates == ["A 451"]


# Commands.


@pytest.mark.parametrize("security", Security)
def test_every_state_that_parses_commands_knows_the_same_verbs_and_every_other_state_none(security: Security) -> None:
    parsing = {ServerState.FRESH, ServerState.GREETED, ServerState.REFUSED, ServerState.SENDER, ServerState.RECIPIENTS}
    verbs = set(actions_of(Security.NONE, ServerState.FRESH))
    for state in ServerState:
        assert set(COMMANDS[security][state]) == (verbs if state in parsing else set())


# The source.

SETTERS = {
    ("smtp.server.framing", "ServerFraming", "__init__", "state"),
    ("smtp.server.framing", "ServerFraming", "_move", "state"),
    ("smtp.server.framing", "ServerFraming", "__init__", "_commands"),
    ("smtp.server.framing", "ServerFraming", "_move", "_commands"),
    ("smtp.auth.exchange", "AuthExchange", "__init__", "state"),
    ("smtp.auth.exchange", "AuthExchange", "_move", "state"),
    ("smtp.client.session", "SessionEngine", "__init__", "state"),
    ("smtp.client.session", "SessionEngine", "_move", "state"),
    ("smtp.client.session", "SessionEngine", "__init__", "_is_over"),
    ("smtp.client.session", "SessionEngine", "_move", "_is_over"),
    ("smtp.client.transaction", "Transaction", "__init__", "phase"),
    ("smtp.client.transaction", "Transaction", "move", "phase"),
}
"""Module, class and method of every assignment to a state, or to what is made of it."""
STATE_NAMES = {"state", "phase", "_commands", "_is_over"}


def assignments(module: str, tree: ast.AST, scope: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where attributes with the name of a state are set, deleted, or named to `setattr`, at any depth."""
    for node in ast.iter_child_nodes(tree):
        inner = (*scope, node.name) if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) else scope
        if isinstance(node, ast.Attribute) and node.attr in STATE_NAMES and not isinstance(node.ctx, ast.Load):
            yield (module, *inner, node.attr)
        if isinstance(node, ast.Call) and "setattr" in ast.unparse(node.func):
            yield (module, *inner, "setattr")
        yield from assignments(module, node, inner)


def read_assignments(directory: Path, root: Path) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for path in sorted(directory.rglob("*.py")):
        found |= set(assignments(".".join(path.relative_to(root).with_suffix("").parts), ast.parse(path.read_text())))
    return found


def test_nothing_else_in_the_engines_sets_a_state() -> None:
    root = Path(mailismus.__file__).parent
    assert read_assignments(root / "smtp", root) == SETTERS


def test_nobody_outside_sets_the_phase_of_a_transaction_or_the_state_of_an_engine() -> None:
    root = Path(mailismus.__file__).parent
    assert read_assignments(root / "submit", root) == set()
    outside = {found for found in read_assignments(root / "deliver", root) if found[-1] != "state"}
    assert outside == set()  # `state` there is that of `deliver.sessions.host_session.HostSession`
    assert "client.state =" not in "".join(path.read_text() for path in (root / "deliver").glob("*.py"))


@pytest.mark.parametrize(
    "line",
    [
        "transaction.phase = Phase.OVER",
        "self.state, other = ServerState.GREETED, 1",
        "self.state: ServerState = ServerState.GREETED",
        "for transaction.phase in phases: pass",
        "del self._is_over",
        "object.__setattr__(self, 'state', 1)",
    ],
)
def test_that_rule_can_fail(line: str) -> None:
    source = f"class A:\n    def b(self):\n        {line}\n"
    assert [found[:3] for found in assignments("m", ast.parse(source))] == [("m", "A", "b")]
