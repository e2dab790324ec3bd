"""Help texts of `mailismus top` (pure). Form as in `admin.commands.wording`."""

from __future__ import annotations

TOP = """\
Shows the running server on one screen that is refreshed: mail that comes in
and goes out, the areas of the queue, barriers and room of its disk, next hops
with what they wait for, what holds mail back, and the last failures.

keys:
  up down page-up page-down   select a row; scroll what is opened
  enter                       open it: what is known, its entries, failures
  esc                         back; without the filter
  tab                         next hops, last failures, held back
  s S                         the order of next hops: in hand, waits, sent,
                              failing, name
  /                           show rows with these words
  p                           pause
  h ?                         these keys
  q                           leave

IN HAND are entries that wait or are under way now; mail that is deferred waits
in the queue until its next attempt, and is counted at the top. SENT, DEFER and
FAIL count recipients: those that have their mail, those for whom it is tried
again later, and those for whom it is given up: refused, or too old. WHY tells
what the mail in hand waits for; where none is, how its last try ended.

It costs the server as much for an empty queue as for a million entries: it
reads nothing from disk, but when a next hop is opened. It needs the running
server (69 without one) and a terminal of 40 columns and 12 lines (64 without
one); 80 by 24 show all columns."""

TOP_EPILOG = """\
examples:
  mailismus top
  mailismus top --interval 5
  ssh -t mx.example.net mailismus top"""

HELP_LINES = tuple(TOP.partition("keys:\n")[2].split("\n\nIt costs")[0].split("\n"))
"""The help on the screen."""
