"""Assembling, part 7: `<sendmail>`, for the server, and for the command `sendmail`, which any user runs.

*Rules*: the command needs the configuration and nothing that it names: users may not read the rest. Local domains in a file
that this user can't read have no part in the origin: `<origin>` says it then.
"""

from __future__ import annotations

from mailismus.config.read.check import Given
from mailismus.config.read.files import Files
from mailismus.config.read.lists import read_names
from mailismus.config.table import application as app
from mailismus.config.table import sendmail as sml
from mailismus.config.table import submit as sub
from mailismus.config.table.root import MTA
from mailismus.config.values.names import parse_domain
from mailismus.config.values.settings import ProgramSettings, SendmailSettings
from mailismus.config.values.units import UnitError
from mailismus.errors import ConfigError


def assemble_sendmail(top: Given, domain: bytes) -> SendmailSettings | None:
    """The settings of `<sendmail>`; None: it was not written. `domain`: the origin where none is written."""
    block = next(iter(top.one(MTA).one(sub.SUBMIT).all(sml.SENDMAIL)), None)
    if block is None:
        return None
    origin = block.get(sml.ORIGIN).encode("ascii") or domain
    return SendmailSettings(block.get(sml.ROOTPATH), block.get(sml.ALLOW), block.get(sml.DENY), origin)


def assemble_for_program(top: Given, listener: Given, file: str, files: Files) -> ProgramSettings:
    """The settings that the command needs; `listener`: the first one. Raises `ConfigError`: there is no `<sendmail>`."""
    host = top.one(app.APPLICATION).get(app.ANNOUNCEHOST).encode("ascii")
    sendmail = assemble_sendmail(top, _first_domain(top, files) or host)
    if sendmail is None:
        raise ConfigError(
            file, 0, "this server takes no messages of programs: write <sendmail/> into <submit>, and restart the server"
        )
    server = listener.one(sub.SERVER)
    return ProgramSettings(file, host, sendmail, server.get(sub.MAXMSGSIZE), server.get(sub.MAXRECIPS))


def _first_domain(top: Given, files: Files) -> bytes:
    block = top.one(app.DIRECTORY)
    try:
        return read_names(block.get(app.DOMAINS), parse_domain, files, block.line_of(app.DOMAINS)).first
    except UnitError:
        return b""
