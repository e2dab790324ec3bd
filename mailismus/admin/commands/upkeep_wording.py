"""Help texts of the commands about a queue as a whole: `fsck`, `queue convert`, `queue setup` (pure). Form as in
`admin.commands.wording`."""

from __future__ import annotations

FSCK = """\
Checks a stopped queue: journal, clusters, message files, names, owners and
modes. Every finding is told with its file and offset, what it is, and what
--repair does about it. There are four sorts:

sorts of findings:
  note        nothing is wrong, somebody may want to know
  harmless    the next start sees to it by itself
  repairable  --repair puts it right, and no mail is lost
  lost        mail, or a part of it, can't be delivered any more

Without --repair nothing is changed: not even a lock file is made, and a copy on
a read-only file system can be looked at, with --queue and --spool.

Of a queue in services rows, marks, index, contents, triggers and due rows are
compared. Beside running servers triggers are left to them, and a fault is told
that is found twice, 20 s apart. With --repair no server of any host may serve
the queue (75).

With --repair bytes are copied to corrupt/ below the queue before they are
changed, and a message that can't be delivered any more becomes a bounce, so
that its sender is told. At the end the queue is started and stopped once, with
nobody to deliver, and looked at again. A repair that was stopped is begun
again.

It ends with 0 when nothing is wrong that a start does not see to (with
--repair: any more), with 65 when a repair is needed, something could not be
repaired or mail is lost, and with 75 when a server or another fsck runs on the
queue."""

FSCK_EXAMPLES = """\
examples:
  mailismus fsck                     # what is wrong
  mailismus fsck --repair            # put it right
  mailismus fsck --json | jq .kind
  mailismus fsck --queue copy/queue --spool copy/spool"""

CONVERT = """\
Moves a stopped queue to another provider, or to other settings of the same
one: every entry keeps its id, number, area, next attempt, attempts and last
reply, every message its bytes. Settings of the new queue come from the
configuration; its <queue provider> may name the old provider or the new one.

The new queue is built beside the old one, which needs as much room again, and
is read back and compared before directories change places. Until then nothing
of the old queue is changed. A conversion that was stopped, by whatever, is
begun again by the same command, or went through whole. The old queue is kept
below conversion/ until --forget-old, which may run beside the server.

A queue in services is converted where no server shares it (75), and into one
without mail (78), with a configuration that names the services. From its begin
on no server is let in, until it is finished, or --give-up; the old one stays
in its services, shut, until --forget-old with the same configuration.

Damage ends it (65): see `mailismus fsck`. It also ends without room (74),
while a server runs (75), and for another user's queue (77)."""

CONVERT_EXAMPLES = """\
examples:
  mailismus queue convert --to log
  mailismus queue convert --forget-old   # when the new queue has served well
  mailismus --config old.xml queue convert --forget-old   # of one in services"""

SETUP = """\
Makes what a queue of provider distributed needs in its services: the keyspace
and its tables, the bucket, and the broker's queues. What is there already is
left as it is, so the command may be repeated, and must be after an update that
says so. Run it once at a time: two that make tables at the same moment may
break the database's schema. A server makes nothing of this, and does not start
where something is missing (78).

It ends with 69 where a service can't be reached or refuses, and with 78 where
the database has fewer nodes than replication asks for, or servers of this queue
use another bucket or virtual host; what was made before stays. Replication is
used where the keyspace is made, and only there.
For other providers there is nothing to set up."""

SETUP_EXAMPLES = """\
examples:
  mailismus queue setup
  mailismus --config /etc/mailismus/mailismus.xml queue setup"""
