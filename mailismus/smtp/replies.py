"""The replies of the server: every fixed one, as the bytes that are sent (RFC 5321 4.2, RFC 2034, RFC 3463).

*Rules*: one line with CRLF. Each has an enhanced status code, but the greeting, the replies to HELO and EHLO, and 354. Local
trouble is 4xx. A reply is a named constant, never composed elsewhere; the few with a variable part are functions here.

*Not here*: which reply is given when (`smtp.server`, `submit.policy`); replies of other servers (`mail.reply`).
"""

from __future__ import annotations

from mailismus.mail.ids import SpoolId, spool_name

OK = b"250 2.0.0 Ok\r\n"
SENDER_OK = b"250 2.1.0 Ok\r\n"
RECIPIENT_OK = b"250 2.1.5 Ok\r\n"
START_CONTENT = b"354 End data with <CR><LF>.<CR><LF>\r\n"
BYE = b"221 2.0.0 Bye\r\n"
READY_FOR_TLS = b"220 2.0.0 Ready to start TLS\r\n"
CANNOT_VERIFY = b"252 2.0.0 Cannot verify the user, but will take a message for him\r\n"
HELP = b"214 2.0.0 Commands: HELO EHLO MAIL RCPT DATA RSET NOOP VRFY HELP QUIT; see RFC 5321\r\n"

# Errors of the client in a command.
UNKNOWN_COMMAND = b"500 5.5.2 Command not recognized\r\n"
BAD_BYTES = b"500 5.5.2 Bare CR, LF or NUL in a command\r\n"
LINE_TOO_LONG = b"500 5.5.6 Line too long\r\n"
BAD_ARGUMENT = b"501 5.5.4 Syntax error in arguments\r\n"
BAD_PARAMETER = b"501 5.5.4 Bad value of a parameter\r\n"
BAD_SENDER = b"501 5.1.7 Bad sender address syntax\r\n"
UTF8_UNDECLARED = b"553 5.6.7 An address in UTF-8 needs the parameter SMTPUTF8 of MAIL\r\n"
BAD_RECIPIENT = b"501 5.1.3 Bad recipient address syntax\r\n"
UNKNOWN_PARAMETER = b"555 5.5.4 Parameter not recognized\r\n"
NOT_IMPLEMENTED = b"502 5.5.1 Command not implemented\r\n"
BAD_SEQUENCE = b"503 5.5.1 Bad sequence of commands\r\n"
NO_RECIPIENTS = b"554 5.5.1 No valid recipients\r\n"
TLS_REQUIRED = b"530 5.7.0 Must issue a STARTTLS command first\r\n"

# Refusals.
TOO_LARGE = b"552 5.3.4 Message too big\r\n"
BARE_BYTES = b"550 5.6.0 Bare CR, LF or NUL in the message\r\n"
LOOP = b"554 5.4.6 Too many Received fields: a loop\r\n"
UNKNOWN_USER = b"550 5.1.1 User unknown\r\n"
RELAY_DENIED = b"554 5.7.1 Relay access denied\r\n"
TOO_MANY_RECIPIENTS = b"452 4.5.3 Too many recipients\r\n"
TOO_MANY_MESSAGES = b"421 4.7.0 Too many messages on one connection\r\n"

# Local trouble, and the ends of a session.
STORAGE_TROUBLE = b"451 4.3.0 Local storage trouble, try again later\r\n"
STORAGE_FULL = b"452 4.3.1 Insufficient system storage\r\n"
SHUTTING_DOWN = b"421 4.3.2 Service shutting down\r\n"
TIMED_OUT = b"421 4.4.2 Timeout exceeded\r\n"
TOO_SLOW = b"421 4.4.2 Data comes too slowly\r\n"
TOO_MANY_ERRORS = b"421 4.7.0 Too many errors\r\n"
TOO_LONG = b"421 4.4.2 Data has come for too long\r\n"
TOO_MANY_CONNECTIONS = b"421 4.3.2 Too many connections, try again later\r\n"
TOO_MANY_OF_PEER = b"421 4.7.0 Too many connections from your address\r\n"
NO_RESOURCES = b"421 4.3.2 No resources for a connection, try again later\r\n"
TOO_EARLY = b"554 5.5.0 A client waits for the greeting (RFC 5321 3.1)\r\n"


def greeting(host: bytes) -> bytes:
    """Return the greeting of a session."""
    return b"220 %b ESMTP\r\n" % host


def queued(spool_id: SpoolId) -> bytes:
    """Return the 250 of a message: it is durable, and we are responsible for it."""
    return b"250 2.0.0 Ok: queued as " + spool_name(spool_id) + b"\r\n"


def taken(name: bytes) -> bytes:
    """Return the 250 of a message that a program handed over: it is durable under that name."""
    return b"250 2.0.0 Ok: taken as " + name + b"\r\n"


def not_taken(why: bytes, *, is_final: bool) -> bytes:
    """Return the refusal of a message that a program hands over. `why`: printable ASCII."""
    return (b"554 5.0.0 " if is_final else b"451 4.3.0 ") + why[:400] + b"\r\n"


def is_positive(reply: bytes) -> bool:
    """Whether the reply is 2xx."""
    return reply[:1] == b"2"


def is_permanent(reply: bytes) -> bool:
    """Whether the reply is 5xx."""
    return reply[:1] == b"5"


def is_closing(reply: bytes) -> bool:
    """Whether the reply is 421: the session ends with it (RFC 5321 3.8)."""
    return reply[:3] == b"421"
