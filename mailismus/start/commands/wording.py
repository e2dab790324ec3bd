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
  mailismus config set mta/queue/retry_maxtime 5d
  mailismus queue list          # waiting mail, and why it waits
  mailismus queue shape         # waiting mail by domain and age
  mailismus why example.org     # why mail for a domain is still here
  mailismus queue flush         # try deferred mail now
  mailismus top                 # a live screen of the running server
  mailismus plan                # a forecast: when mail will be delivered
  mailismus demo                # a playground on this machine alone
  mailismus tls example.org     # what the servers of a domain show of TLS
  mailismus shell               # queue commands and why, interactive
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
  1   config diff: the two differ
  64  wrong usage
  65  bad data: a damaged file, no such message; inject: this message is
      refused for good
  68  tls: there is no such host
  69  the command needs the running server, and there is none; tls: no
      host answers
  70  internal error
  74  input or output failed
  75  try again: another server holds the queue, an address is in use;
      tls: a host does not show what is demanded
  77  no permission
  78  configuration: the line on standard error begins with FILE:LINE"""

CONFIG = """\
Checks, shows, compares or changes the configuration. The file is the one that
--config names, else ./config/mailismus.xml, else /etc/mailismus/mailismus.xml."""

CONFIG_EPILOG = """\
examples:
  mailismus config check                # before a restart or SIGHUP
  mailismus config show | grep retry
  mailismus config diff                 # what the running server does not have"""

CHECK = """\
Prints ok, or the errors of the file: for each the line, the value found and
what to write instead. It changes and starts nothing, and uses no network.

It also finds settings that make no sense by themselves (a relay rule that
never matches, networks that overlap, retries longer than the lifetime) or on
this host (directories that can't be made or are open to others, ports and
addresses that this user may not use, packages that the queue needs and that
are not installed). Run it as the user of the server.

Last the schema for editors is asked, as a second opinion on a good file.

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

SET = """\
Changes one setting in the file. Only that element changes: comments, order
and white space stay. An element that is missing is put where the manual has
it; relay[+], destination[+] and listener[+] add one more.

Several values are the items of a list. The path of a block takes settings in
it, NAME=VALUE, changed together; those of a block in it too, as
objects/url=VALUE. What can't stay beside the new value goes with --unset.

The changed text is checked as `config check` does, before it is written: with
an error the file stays as it is (78), and so it does if another program has
changed it meanwhile (75). Warnings are those that the change brings. The
former text is kept in FILE~. Owner, mode and symbolic links are kept. It says
whether SIGHUP is enough."""

SET_EPILOG = """\
examples:
  mailismus config set mta/queue/retry_maxtime 5d
  mailismus config set mta/queue/retry_delays 15m 1h 4h
  mailismus config set mta/submit/listeners/listener[2]/@port 587
  mailismus config set mta/deliver/relays/relay[+] address=192.0.2.1:25
  mailismus config set --dry-run directory/domains example.net example.org
  mailismus config set mta/queue provider=chunk --unset mta/queue/journal"""

UNSET = """\
Removes settings or blocks from the file: their defaults are in force then.
What `config set` wrote goes with the blocks that it made around it, so that
the file is again what it was. Checked and written as `config set` does."""

UNSET_EPILOG = """\
examples:
  mailismus config unset mta/queue/retry_maxtime
  mailismus config unset mta/deliver/relays/relay[2]
  mailismus config unset --dry-run admin/metrics"""

DIFF = """\
Compares every value in force by the file with the running server, or with
another file, and ends with 1 where they differ. Without a running server it
ends with 69. Of a file that a setting names (users, certificates) only whether
its content differs is said. A relative path begins at the folder of the file
that it stands in."""

DIFF_EPILOG = """\
examples:
  mailismus config diff
  mailismus config diff /etc/mailismus/mailismus.xml~"""

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

COMPLETION = """\
Prints a script that completes commands, options, paths of settings and the
words of FILTERs in a shell. It is made for this version: make it again after an
update. The shell that `mailismus shell` starts completes by itself."""

COMPLETION_EPILOG = """\
examples:
  eval "$(mailismus completion bash)"          # in ~/.bashrc
  eval "$(mailismus completion zsh)"           # in ~/.zshrc, behind compinit
  mailismus completion fish > ~/.config/fish/completions/mailismus.fish
  mailismus completion bash > /etc/bash_completion.d/mailismus"""
