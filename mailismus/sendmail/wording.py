"""Help texts of `sendmail` and `mailq` (pure). Form as in `admin.commands.wording`."""

from __future__ import annotations

USAGE = """\
usage: sendmail [OPTION...] [RECIPIENT...]     send the message on standard input
       sendmail -bs                            speak SMTP on standard input
       sendmail -bp, mailq                     list the queue
       sendmail -q                             make deferred mail due
"""

SENDMAIL = """\
Reads a message, completes its From, Date and Message-ID, removes its Bcc, and
hands it to the running server, or, where none takes it, leaves it in the drop
directory, from which the server takes it at its next start. Ends with 0 when
the message is durable in one of the two, not before.

options:
  -t           take recipients from To, Cc and Bcc too
  -i, -oi      a line with a single dot does not end the message
  -f SENDER    sender of the envelope, who gets reports; '' for none
  -r SENDER    the same
  -F NAME      full name of the sender, for a message without From
  -bs          speak SMTP; lines end as the first one does, with CR LF or LF
  -bp -bm      list the queue; send (the default)
  -q           make deferred mail due; -qIID, -qRTEXT, -qSTEXT: of an id, or
               with the text in the recipient or sender
  -N -R -V     notification, return and id of the envelope (RFC 3461): checked,
               and ignored by this version
  -v           print the id of the message
  -C FILE      the configuration; by default MAILISMUS_CONFIG of the
               environment, else /etc/mailismus/mailismus.xml
  --           what follows is an address

All other options of sendmail are ignored.

exit codes:
  0   the message is durable
  64  wrong usage, or an address is none
  65  the message or a recipient is refused: unknown, too large, NUL or bare CR,
      too many recipients, a header that can't be read; with -bs: the input
      ended in the middle
  69  -q needs the running server, and there is none
  74  input or output failed
  75  neither the server nor the drop directory takes the message now
  77  this user's messages are not taken; mailq and -q are for root and the
      server's user
  78  the configuration is wrong, or the drop directory is unsafe"""

MAILQ = """\
Lists the queue as `mailismus queue list` does, for programs that call mailq.
It is for root and the server's user; any other user is refused with 77."""

SENDMAIL_EPILOG = """\
examples:
  sendmail -t -i < message               # to whom its header says
  sendmail -f '' -- joe@example.net < report
  sendmail -bs                           # a program speaks SMTP"""

MAILQ_EPILOG = """\
examples:
  mailq                                  # all that waits
  MAILISMUS_CONFIG=/srv/mail.xml mailq   # of another server"""
