"""Help texts of `mailismus demo`, and what it says (pure). Form as in `admin.commands.wording`."""

from __future__ import annotations

from mailismus.demo.manners import SAID, domain_of_manner

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
  export CONFIG={config}
  mailismus --config $CONFIG top
  mailismus --config $CONFIG queue shape
  mailismus --config $CONFIG why {slow}
  mailismus --config $CONFIG queue list domain={grey} --limit 3
  mailismus --config $CONFIG queue flush domain={dead}
  less {log}

Or open {page} in a browser.
"""
ASK = "Enter: the live screen (q leaves it).  q and Enter: the end of the playground. "
GONE = "Everything is stopped and removed."


def invitation(config: str, log: str, page: str) -> str:
    """What to try in a playground with this configuration, log and web page."""
    slow, grey, dead = ("slow.test", "greylisting.test", "dead.test")
    return _TRY.format(places=_PLACES, config=config, log=log, page=page, slow=slow, grey=grey, dead=dead)
