"""Help texts of `mailismus plan` (pure). Form as in `admin.commands.wording`."""

from __future__ import annotations

PLAN = """\
Forecasts what becomes of the queue: when the backlog will be gone, by next
hop; when a message will be tried; what expires; what another setting or the
loss of a host would change. The server's own scheduler runs in this process on
a copy of the waiting entries, in virtual time, between receivers that behave as
they did lately, as far as the running server knows: how long they take, how
many connections and messages they allow, greylisting, full mailboxes, dead
hosts. Nothing of the running server is disturbed. The same seed gives the same
forecast of the same queue.

With FILTERs the whole queue is simulated, and only matching entries are told;
of up to 50 entries each attempt is told.

What it can't know: mail that comes in later, what receivers will do that they
did not do lately, and how busy this machine is. A dead host stays dead, held
mail stays held, and reports of failures are not made. TLS and credentials take
no part. Without a running server only dead hosts and the last replies of
entries are known.

SENT, BOUNCED and EXPIRED are counted until the end of the time; LEFT is still
there then. GONE is when the last entry has left; "not until" says when that
would be at the pace of the last quarter of the time."""

PLAN_EPILOG = """\
examples:
  mailismus plan
  mailismus plan --until 12h domain=example.org
  mailismus plan 000000010000002A        # when will it be tried
  mailismus plan --set mta/deliver/maxserverconnections=5
  mailismus plan --without mx1.example.org
  mailismus plan --json"""
