"""What the help says of the program and of `mailismus config` and `manual`; the man page shows the same (pure).

Form as in `commands.wording`: paragraphs between empty lines; a line that ends with a colon heads the indented lines below.
"""

from __future__ import annotations

PROGRAM = """\
Looks after a Mailismus mail queue server: shows and checks its configuration,
shows its queue, and tells it to try deferred mail now.

The server itself is run by Twisted: `twistd -n --pidfile= mailismus --config
FILE` in the foreground; without -n it puts itself into the background. Once
it accepts mail it says `ready:` with the names and ports of its listeners."""

PROGRAM_EPILOG = """\
examples:
  mailismus config check        # is the file right?
  mailismus config show         # what is in force, and whence
  mailismus queue list          # what waits, and why
  mailismus queue shape         # for whom, and for how long
  mailismus queue flush         # try what is deferred now
  mailismus shell               # the same commands, interactive
  mailismus COMMAND --help      # more about each

files:
  ./config/mailismus.xml          the configuration, without --config
  /etc/mailismus/mailismus.xml    the same, where that is not there

signals of the server:
  SIGTERM, SIGINT   stop; mail behind its final dot is waited for
  SIGHUP            read the configuration and certificates again
  SIGUSR1           reopen the logs

exit codes:
  0   done
  64  wrong usage
  65  bad data: a file that does not check, no such message
  69  the running server is needed, and there is none
  70  internal error
  74  input or output failed
  75  try again: another server holds the queue, an address is in use
  77  no permission
  78  configuration: the line on standard error begins with FILE:LINE"""

CONFIG = """\
Checks or shows the configuration. The file is the one that --config names
(before the command), else ./config/mailismus.xml, else
/etc/mailismus/mailismus.xml."""

CHECK = """\
Says ok, or what is wrong with the file: each time where it stands, what was
found and what to write instead. Nothing is changed or started, and no network
is asked.

It finds what makes no sense by itself (a relay rule that never matches,
networks that overlap, retries longer than the lifetime) or on this host
(directories that can't be made or are open to others, ports and addresses that
this user may not have). Run it as the user that runs the server.

An error ends it with 78; with warnings alone the server starts."""

CHECK_EPILOG = """\
examples:
  mailismus config check
  mailismus --config /etc/mailismus/mailismus.xml config check
  runuser -u mailismus -- mailismus config check"""

SHOW = """\
Shows every value in force, one a line: where it stands, its value, and in
brackets where it comes from: FILE:LINE, or default."""

SHOW_EPILOG = """\
examples:
  mailismus config show
  mailismus config show | grep retry
  mailismus config show | grep -v '\\[default\\]'   # what the file says"""

SAMPLE = """\
Prints the shipped sample: every setting with its default and a sentence. It
works as it stands on one host alone."""

SAMPLE_EPILOG = """\
examples:
  mailismus config sample > mailismus.xml"""

SCHEMA = """\
Prints a RELAX NG schema of configuration files, for editors and xmllint."""

SCHEMA_EPILOG = """\
examples:
  mailismus config schema > mailismus.rng
  xmllint --noout --relaxng mailismus.rng mailismus.xml"""

MANUAL = """\
Prints a page of the manual: `commands` is mailismus(1), `settings` is
mailismus.xml(5), with every setting, its default and an example."""

MANUAL_EPILOG = """\
examples:
  mailismus manual commands | man -l -
  mailismus manual settings | man -l -
  mailismus manual settings --markdown"""
