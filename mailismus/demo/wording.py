"""Help texts of `mailismus demo`, and what it says (pure). Form as in `admin.commands.wording`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mailismus.demo.manners import SAID, Manner, domain_of_manner

_PLACES = "\n".join(f"  {domain_of_manner(manner):<17} {said}" for manner, said in SAID.items())

DEMO = f"""\
Makes a playground on this machine: a server with a queue of its own, mail
hosts of all kinds, some mail, and the live screen of `mailismus top`. All of it
listens on loopback alone, on ports that are free, and sends nothing anywhere
else. When the command ends, by whatever, everything is stopped and removed.

domains of the playground:
{_PLACES}

Its retries are much faster than those of a real server. Without a terminal it
says where the playground is, and stays until it gets SIGTERM or SIGINT, or for
as long as --for says."""

DEMO_EPILOG = """\
examples:
  mailismus demo
  mailismus demo --rate 20
  mailismus demo --for 60               # for a program"""

_TRY = """\
A playground is running, with the mail hosts of
{places}

Try, in another terminal:
  alias m={command}
  m top                                   # what happens now
  m queue shape                           # how much waits, and for which domains
  m queue list --limit 5                  # some of it, each with its ID
  m why ID                                # why this one waits, and its attempts
  m why {dead}                         # the same of all mail for a domain
  m plan --until 10m                      # when it will be delivered
  m queue hold domain={dead} --reason trying      # what waits; --incoming: what comes
  m queue release domain={dead} --reason trying
  m queue delete domain={full} --reason trying
  m queue acts                            # what was done, each with its number
  m queue undo A3                         # takes the third one back: the deletion
  m queue flush domain={dead}          # try it now
  less {log}

Or open {page} in a browser.
"""
ASK = "Enter: the live screen (q leaves it).  q and Enter: the end of the playground. "
GONE = "Everything is stopped and removed."


def invitation(program: Sequence[str], config: str, log: str, page: str) -> str:
    """What to try in a playground with this configuration, log and web page. `program`: how the command line is called."""
    command = shlex.quote(shlex.join([*program, "--config", config]))
    domains = {manner.value: domain_of_manner(manner) for manner in (Manner.FULL, Manner.DEAD)}
    return _TRY.format(places=_PLACES, command=command, log=shlex.quote(log), page=page, **domains)
