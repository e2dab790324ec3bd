"""The table of commands: what each verb means in each state of a server session (RFC 5321 4.1.4, RFC 3207 4, 4.2).

*Rules*: one look-up by state and verb. A verb that the table does not have is unknown (500); one that is known and not legal
in the state is a bad sequence (503). RCPT and DATA behind a refused MAIL are no errors of the client: it sent them ahead.

*Not here*: what an action does (`smtp.server`), which state follows (`smtp.server.state`).
"""

from __future__ import annotations

import enum

from mailismus.smtp.server.limits import Security
from mailismus.smtp.server.state import ServerState


class CommandAction(enum.Enum):
    """What the engine does at a command."""

    HELLO = "greet: HELO, EHLO"
    MAIL = "begin a transaction"
    RCPT = "add a recipient"
    DATA = "begin the content"
    RESET = "abandon the transaction"
    STARTTLS = "begin TLS"
    NOOP = "reply 250"
    VERIFY = "reply 252"
    HELP = "reply 214"
    QUIT = "end the session"
    NO_RECIPIENTS = "DATA in a transaction whose recipients were all refused: 554, no error"
    BEHIND_REFUSED_MAIL = "RCPT or DATA behind a refused MAIL: 503, no error"
    BAD_SEQUENCE = "the command is not legal in this state: 503"
    NOT_IMPLEMENTED = "502"
    TLS_REQUIRED = "530"


_BEFORE_TLS = (b"EHLO", b"NOOP", b"STARTTLS", b"QUIT")
_ANYWHERE = {
    b"HELO": CommandAction.HELLO,
    b"EHLO": CommandAction.HELLO,
    b"RSET": CommandAction.RESET,
    b"NOOP": CommandAction.NOOP,
    b"VRFY": CommandAction.VERIFY,
    b"HELP": CommandAction.HELP,
    b"QUIT": CommandAction.QUIT,
    **dict.fromkeys((b"MAIL", b"RCPT", b"DATA", b"STARTTLS"), CommandAction.BAD_SEQUENCE),
    **dict.fromkeys((b"EXPN", b"ETRN", b"TURN", b"AUTH", b"BDAT"), CommandAction.NOT_IMPLEMENTED),
}
"""Every verb; what it means where `_LEGAL` does not say otherwise."""
_LEGAL = {
    ServerState.FRESH: {},
    ServerState.GREETED: {b"MAIL": CommandAction.MAIL, b"STARTTLS": CommandAction.STARTTLS},
    ServerState.REFUSED: {
        b"MAIL": CommandAction.MAIL,
        b"STARTTLS": CommandAction.STARTTLS,
        b"RCPT": CommandAction.BEHIND_REFUSED_MAIL,
        b"DATA": CommandAction.BEHIND_REFUSED_MAIL,
    },
    ServerState.SENDER: {b"RCPT": CommandAction.RCPT, b"DATA": CommandAction.NO_RECIPIENTS},
    ServerState.RECIPIENTS: {b"RCPT": CommandAction.RCPT, b"DATA": CommandAction.DATA},
}
"""The states in which command lines are parsed, and the verbs that depend on them."""


def actions_of(security: Security, state: ServerState) -> dict[bytes, CommandAction]:
    """The verbs in this state; none where no command line is parsed."""
    if state not in _LEGAL:
        return {}
    actions = {**_ANYWHERE, **_LEGAL[state]}
    if security is Security.REQUIRED:
        return {verb: action if verb in _BEFORE_TLS else CommandAction.TLS_REQUIRED for verb, action in actions.items()}
    if security is Security.NONE:
        actions[b"STARTTLS"] = CommandAction.NOT_IMPLEMENTED
    elif security is not Security.OFFERED:
        actions[b"STARTTLS"] = CommandAction.BAD_SEQUENCE
    return actions
