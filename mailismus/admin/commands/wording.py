"""Help texts of the queue's commands (pure): descriptions, examples and the words of filters.

The command line, the shell and the man page all show these texts. Their form: paragraphs between empty lines; a line that
ends with a colon is a heading of the indented lines below it, which are shown as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

Example = tuple[str, str]
"""A command without the words before it, and its purpose."""

FILTERS = """\
A FILTER chooses entries; of several all must match:
  ID                 a message (000000010000002A) or one recipient of it
                     (000000010000002A-2), as `queue list` shows them
  sender=GLOB        the envelope's sender; 'sender=<>' is the empty one, of
                     reports, which lists show as MAILER-DAEMON
  recipient=GLOB     a recipient's address
  domain=GLOB        the domain of a recipient
  client=GLOB        the IP address that the message came from
  area=AREA          incoming (not tried yet), deferred (tried, waits),
                     bounces (failed for good, awaits its report),
                     hold (by `queue hold`), deleted (kept for `queue undo`;
                     no other FILTER matches these)
  older=TIME         messages that arrived before: older=4h, older=1d12h
  younger=TIME       messages that arrived since
  larger=SIZE        messages of more bytes: larger=1M, larger=64Ki
  reply=TEXT         a part of the last reply, as in reply=timeout

In a GLOB * stands for any characters and ? for one; case is ignored. Quote
it, or the shell of the system takes the * for files. TIME: units d h m s.
SIZE: K M G of 1,000, Ki Mi Gi of 1,024."""

QUEUE = """\
Looks at the queue: in the running server where there is one, else in its
files, which are only read, or in its services. The file that --config names
says where they are; with --queue and --spool a queue copied from elsewhere is
looked at.

Files that can't be read are left out: a line on stderr says how many, which
and why, and the command ends with 74. It ends with 75 when the server answers
so many commands at once that another has to wait."""

QUEUE_EXAMPLES = """

examples:
  mailismus queue shape                         # for whom it waits
  mailismus queue list domain=example.org
  mailismus queue count area=deferred older=1d
  mailismus queue flush domain=example.org"""

LIST = """\
Lists every recipient that is still to be served, message by message, as mailq
does: spool id, size, arrival and sender of the message, then what a recipient
waits for, why, and the recipient.

At a terminal, lines are folded and recipients that wait alike stand together.
In a file or a pipe each recipient has two lines: in parentheses its queue id,
what it waits for and why, and below that its address. Lines come as they are
found, in no order of time or name, and nothing is held: the longest queue can
be listed, and Ctrl-C stops.

Recipients of a message that wait for different times may be found apart; the
message is then listed in parts. The last line counts messages as Requests,
each once; one whose parts lie more than 10,000 such messages apart counts
again. `queue count` counts exactly.

With --json each line is an object with the names of `postqueue -j`;
next_attempt and arrival_time are UTC seconds."""

COUNT = """\
Counts entries (recipients), messages and bytes as stored of each area. A
message with entries in two areas counts in both. Where the running server
accepts no mail, the last line says why."""

SHAPE = """\
Shows for whom the queue waits and for how long: a row for each domain, a
column for each age of the messages, most entries first. A column holds what
is as old as it says and older than the one before it. What grows at the left
has just come; what grows at the right does not get away."""

SHOW = """\
Shows a message: its envelope, the recipients still to be served with their
attempts (the first one and the last five), next attempt and last reply, and
its header.

With --body it is the message alone, as a next hop gets it: byte for byte into
a file or a pipe (line ends are CRLF), with control characters escaped on a
terminal."""

WHY = """\
Says of each entry of a message, a recipient's address or a recipient's domain
why it is still here: in delivery, behind other mail on a connection, held by
a limit, a host, a name server or a disk, or due later, with the last reply.
Times of day are local ones.

Of an ID or an address it also shows the attempts, the first one and the last
five of each entry: when, which host, the level of TLS, the reply, the decision.

reasons, as the metrics and the log have them:
  connections window host rate     limits towards other servers
  dead trial slow                  hosts that fail or do not reply
  workers share room               limits of this server
  lookup lookups                   name servers
  local user maildir               local deliveries
  disk queue machine               trouble of this machine
  underway queued later report next start      nothing holds it back
  act                              an act holds it, or has deleted it

Without an entry it says what is known of the domain's mail hosts. Without a
running server it reads the files, and knows which hosts were dead. An ID that
is not in the queue ends it with 65.

With --json each line is an object with the names of `queue list`; hold is the
reason in a word, reason the sentence, tried the attempts."""

FLUSH = """\
Makes deferred entries due now, whatever their next attempt was, and says how
many. Their hosts are tried even if they are known to be dead: with FILTERs
those of the entries that match, without one all hosts. The attempt counts
like any other. It needs the running server (69 without one)."""

_ACT = """

Without a FILTER it needs --all. It first says how many entries match, by
domain, and asks at a terminal where these are more than 100 (--yes: it does
not ask); --dry-run ends there. What came later than the act is not concerned.
Entries that are out for delivery are not recalled: when one comes back
without success, it is acted on then; the last line says how many those are.

An act over a large queue goes in slices, beside deliveries. Ctrl-C interrupts
it behind a slice: `queue acts --resume ACT` goes on. A crash of the server
leaves each slice whole or not begun, and the next start goes on. Each act has
a name (A7): see `mailismus queue acts`. Without a running server the stopped
queue is opened under its lock (75 where another process has it).

It ends with 75 too where the act is not complete: the server stops, or another
command has interrupted it; with 69 where the server died, with 130 by Ctrl-C."""

HOLD = (
    """\
Holds entries back: they are not tried, not flushed and do not expire, until
`queue release` or `queue undo`, or with --for until that time is over. The
age of their message goes on: one that is older than retry_maxtime when it is
released has one more attempt.

With --incoming it is a rule for mail to come: each new entry that matches is
held from the moment on in which its message is accepted; mail that is here is
left alone. FILTERs are sender=, recipient=, domain=, client= and larger=, or
--all. `queue acts` lists the rule; it ends by `queue undo`, or with --for by
itself, and either releases what it has held. Of several rules the oldest that
matches has an entry; 20 may be in force."""
    + _ACT
)

RELEASE = (
    """\
Releases entries that are on hold, whoever held them: each waits where it
stood before, for its next attempt."""
    + _ACT
)

DELETE = (
    """\
Deletes entries without a word to their senders. They are kept in the area
deleted for <undo>, as far as <undospace> allows, and `queue undo ACT` brings
them back until then. Where not all can be kept it says so before it begins."""
    + _ACT
)

BOUNCE = (
    """\
Returns entries to their senders, as if a host had refused them for good: the
report has the reason. `queue undo ACT` brings back those whose report is not
written yet. A message without a sender is deleted in place of that."""
    + _ACT
)

REDIRECT = (
    """\
Sends entries through another relay, whatever <relay> and MX say, local users
too, or to another recipient (an address with "@"), by the route of that one.
Entries stay where they are: deferred ones wait for their time, or for
`queue flush`. `queue undo ACT` brings back the usual route, or the recipient.
RELAY: the port is 25 unless it is named. A <relay> of the configuration with
the same host and port lends its TLS and its credentials.
RECIPIENT: the envelope alone changes. Several recipients of a message stay as
many entries: that address may get so many copies. If its server refuses it,
the entry bounces, which the undoing does not take back. Entries that go there
already are passed over; `recipient=` and `domain=` mean the new address.
A relay or server that sends the mail back here is not found out: such a loop
ends when the message has too many Received fields."""
    + _ACT
)

ACTS = """\
Lists the acts on the queue, the newest last: name, when it began, state, user,
what it did to how many entries, FILTER and reason. With --json each line is an
object; times are UTC seconds. With --resume an interrupted act goes on.
The file state/acts below the queue is the record of all."""

UNDO = """\
Undoes an act: entries that it held or deleted, or made bounces of whose
report is not written yet, go back to where they stood; what it redirected has
its usual route again. A rule for mail to come (`queue hold --incoming`) ends,
and what it holds is released. What was delivered, reported or removed since
stays so; the counts say how much came back. Ctrl-C interrupts it behind a
slice: the act is "being undone" then, and the same command, or the next start,
goes on."""

SERVERS = """\
Shows the servers of a queue that several share (provider distributed), as its
services know them: name, epoch, what is left of the lease or since when it is
over, entries in the hand of each, and which services it can't use. What a
server tells of itself is some seconds old. Those that are gone are shown for
30 days. Without a running server the services are asked (75 where they can't
be reached). For other providers it says that the queue has one server.

With --json each line is an object; times are in seconds, from now."""

SHELL = """\
Reads commands about the running server's queue and obeys them: those of
`mailismus queue`, and help. It needs the running server (69 without one).

At a terminal Tab completes, the arrows go back to what was typed (also the
last time: it is kept in ~/.local/state/mailismus/history, but not what begins
with a space), Ctrl-C stops a listing and Ctrl-D leaves. Otherwise commands
are read from standard input, a line each; the exit code is that of the last
command that failed."""

DUMP = """\
Prints a file of the queue readably, of a stopped or a running server: a
segment of the journal or of a log (.mqj), a cluster (.mqc), a message file
(.msg), a file of a queue of chunks, the files positions, provider, lock,
the files in state/, or a file in corrupt/. Bytes that do not check are
reported in their place. It ends with 65 for a header or a message file that
does not check, and for any other file.

Of a queue in services FILE may also be a spool id, AREA/SLICE/BUCKET/ID, which
names a share, or AREA/SLICE/BUCKET, a partition: rows, marks, rows of the index
and the content are printed. It ends with 75 where a service can't be reached."""

EXAMPLES: dict[str, Sequence[Example]] = {
    "list": (
        ("list", "everything"),
        ("list area=deferred older=1d", "for more than a day"),
        ("list 'recipient=*@example.org'", "for one domain"),
        ("list reply=timeout --limit 20", "20 that timed out"),
        ("list --json 'sender=<>'", "for a program"),
    ),
    "count": (
        ("count", "how much there is"),
        ("count --json area=deferred", "for a program"),
        ("count domain=example.org", "for one domain"),
    ),
    "shape": (
        ("shape", "who is waited for"),
        ("shape area=deferred --limit 9", "those that wait most"),
        ("shape --by host", "who said no last"),
        ("shape --by sender", "who sends so much"),
        ("shape --svg shape.svg", "a picture"),
    ),
    "show": (
        ("show 000000010000002A", "a message"),
        ("show 000000010000002A-2", "one recipient of it"),
        ("show 000000010000002A --body", "the mail itself"),
    ),
    "why": (
        ("why 000000010000002A", "a message"),
        ("why 000000010000002A-2", "one recipient of it"),
        ("why carol@example.org", "what waits for her"),
        ("why example.org --limit 5", "five of a domain"),
    ),
    "flush": (
        ("flush", "everything deferred"),
        ("flush domain=example.org", "what waits for one domain"),
        ("flush 000000010000002A-2", "one recipient"),
    ),
    "hold": (
        ("hold domain=example.org --reason 'sick host'", "one domain"),
        ("hold larger=10M --for 2h --reason night", "for 2 hours"),
        ("hold --incoming client=192.0.2.7 --reason spam", "to come"),
        ("hold --all --dry-run --reason none", "how many"),
    ),
    "release": (
        ("release domain=example.org --reason well", "one domain"),
        ("release --all --reason 'all is well'", "everything"),
    ),
    "delete": (
        ("delete 000000010000002A --reason spam", "a message"),
        ("delete 'sender=joe@*' --reason spam", "of a sender"),
    ),
    "bounce": (("bounce domain=gone.example --reason closed", "of a domain"),),
    "redirect": (
        ("redirect domain=a.example --to b --reason down", "one domain"),
        ("redirect sender=a@b.c --to c@d.e --reason left", "one"),
    ),
    "acts": (("acts", "what was done"), ("acts --json", "for a program")),
    "undo": (("undo A7", "take it back"),),
    "servers": (("servers", "who shares it"), ("servers --json", "for a program")),
}

SHELL_EXAMPLES = "examples:\n  mailismus shell\n  echo 'count area=deferred' | mailismus shell"

DUMP_EXAMPLES = """\
examples:
  mailismus dump var/queue/deferred/20261121T0900/7-1.mqc
  mailismus dump var/queue/log/00000003.mqj
  mailismus dump var/queue/positions
  mailismus dump var/spool/01/0000000A00000001.msg
  mailismus dump var/queue/corrupt/00000012.mqj-4096
  mailismus dump var/queue/state/hosts            # which hosts are dead
  mailismus dump 0000000A00000001                 # of a queue in services"""


def examples_of(name: str, program: str) -> str:
    """Return the examples of a command. `program`: the words before it."""
    lines = [(f"{program}{command}", purpose) for command, purpose in EXAMPLES[name]]
    width = max(len(command) for command, _ in lines)
    return "examples:\n" + "\n".join(f"  {command:<{width}}  # {purpose}" for command, purpose in lines)
