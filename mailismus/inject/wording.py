"""Help texts of the command `inject` (pure). Form as in `admin.commands.wording`."""

from __future__ import annotations

INJECT = """\
Reads a message from stdin and puts it into the queue, for delivery to these
recipients. Prints the message's id and ends with 0 when the message is
durable, not before. On any other end nothing was accepted, but where the line
on stderr says that the message may be in the queue.

Addresses are those of the envelope; the header is not looked at. -f '' is the
null sender of reports. Line ends are LF or CRLF. The message is checked as
over SMTP, for a client that may send to anyone, with the limits of the first
<listener>, and gets a Received field. Either all recipients are accepted, or
none.

Where the queue's provider lets several programs write (chunk), this command
writes the files itself, as the owner of the queue alone, with or without a
running server, which hears of it at once. With other providers the running
server takes the message.

exit codes:
  0   the message is durable
  64  an address is none, or the command line is wrong
  65  a recipient or the message is refused: unknown, too large, bare CR or
      NUL, too many recipients
  69  the queue's provider needs the running server, and none runs
  74  the disk fails
  75  try again: the disk is full, the server takes no mail now, a repair or
      a conversion of the queue is under way
  77  the queue belongs to another user
  78  the configuration is wrong, or the queue is of another provider"""

INJECT_EPILOG = """\
examples:
  mailismus inject -f joe@example.net sue@example.org < message
  mailismus inject -f '' postmaster < report"""
