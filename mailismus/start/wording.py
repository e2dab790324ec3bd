"""Help texts of the program and of `mailismus config` and `manual`; the man page shows them too (pure).

Form as in `commands.wording`: paragraphs between empty lines; a line that ends with a colon heads the indented lines below.
"""

from __future__ import annotations

PROGRAM = """\
Manages a Mailismus mail queue server: shows and checks its configuration,
shows its queue, and makes it try deferred mail now.

Twisted runs the server itself: `twistd -n --pidfile= mailismus --config FILE`
in the foreground; without -n it goes into the background. Once it accepts
mail it logs `ready:` with the names and ports of its listeners."""

PROGRAM_EPILOG = """\
examples:
  mailismus config check        # check the configuration file
  mailismus config show         # every value, and its origin
  mailismus queue list          # waiting mail, and why it waits
  mailismus queue shape         # waiting mail by domain and age
  mailismus queue flush         # try deferred mail now
  mailismus shell               # the same commands, interactive
  mailismus COMMAND --help      # more about a command

files:
  ./config/mailismus.xml          the configuration, without --config
  /etc/mailismus/mailismus.xml    the same, if the first is missing

signals of the server:
  SIGTERM, SIGINT   stop, after transactions past their final dot
  SIGHUP            read the configuration and certificates again
  SIGUSR1           reopen the logs

exit codes:
  0   done
  64  wrong usage
  65  bad data: a damaged file, no such message
  69  the command needs the running server, and there is none
  70  internal error
  74  input or output failed
  75  try again: another server holds the queue, an address is in use
  77  no permission
  78  configuration: the line on standard error begins with FILE:LINE"""

CONFIG = """\
Checks or shows the configuration. The file is that of --config (before the
command), else ./config/mailismus.xml, else /etc/mailismus/mailismus.xml."""

CHECK = """\
Prints ok, or the errors of the file: for each the line, the value found and
what to write instead. It changes and starts nothing, and uses no network.

It also finds settings that make no sense by themselves (a relay rule that
never matches, networks that overlap, retries longer than the lifetime) or on
this host (directories that can't be made or are open to others, ports and
addresses that this user may not use). Run it as the user of the server.

An error ends it with 78; with warnings alone the server starts."""

CHECK_EPILOG = """\
examples:
  mailismus config check
  mailismus --config /etc/mailismus/mailismus.xml config check
  runuser -u mailismus -- mailismus config check"""

SHOW = """\
Shows every value in force, one on each line: its path, its value, and in
brackets its origin: FILE:LINE, or default. Settings that belong to other
queue providers are left out."""

SHOW_EPILOG = """\
examples:
  mailismus config show
  mailismus config show | grep retry
  mailismus config show | grep -v '\\[default\\]'   # values of the file"""

SAMPLE = """\
Prints the sample file: every setting with its default and a sentence. It
works unchanged on a single host."""

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
