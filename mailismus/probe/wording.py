"""Help texts of the command `tls` (pure). Form as in `admin.commands.wording`."""

from __future__ import annotations

TLS = """\
Connects with other servers as this one would to send mail, and shows what
they offer of TLS: the greeting, the offers before and under TLS, protocol and
cipher, the certificates with names and dates, which level each host reaches
(none, encrypt, verify), and why it reaches no higher one. Nothing is sent but
EHLO, STARTTLS and QUIT: no mail, and no credentials.

A DOMAIN means the hosts that its mail goes to by the configuration: a relay,
or its mail hosts (MX). HOST:PORT, and an IP address, mean that host itself;
of the hosts of relays the configuration says what they must show. A name
without a port is a domain, unless it is the host of a relay. Without a
configuration the defaults count.

Of a relay with credentials it is said whether it offers a mechanism for them.
They are not tried.

Each address of each host is tried, with at most a minute for each connection,
8 at a time. A host that reaches less than verify, and one whose certificate
was refused, is connected with once more to find out why.

With --json each line is an object for one address; times are UTC seconds.

exit codes:
  0   each host that answers shows what the configuration demands
  68  there is no such host, or the mail of the domain stays here
  69  no host answers
  75  a host does not show what is demanded, offers no mechanism for the
      credentials, or takes no mail now; or names can't be looked up now"""

TLS_EPILOG = """\
examples:
  mailismus tls example.org            # the hosts of a domain
  mailismus tls mx.example.org:25      # one host
  mailismus tls example.org --json"""
