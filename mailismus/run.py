"""The program as `twistd` and `twist` run it: the start and the composition, put together.

*Not here*: options, privileges, the log, exit codes (`start.maker`); what a server consists of (`app`).
"""

from __future__ import annotations

from twisted.python import usage

from mailismus.start import maker
from mailismus.start.maker import Build, Options
from mailismus.start.service import MailismusService

__all__ = ["Options", "makeService"]


def makeService(options: usage.Options) -> MailismusService:
    """The service, after all has been tried that can refuse a start. Raises `SystemExit` with an exit code of ours."""
    return maker.make_service(options, _find_build)


def _find_build() -> Build:
    from mailismus import app  # here: a wrong option is told without loading a server

    return app.build
