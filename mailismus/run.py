"""The program as `twistd` and `twist` run it: the start and the composition, put together.

*Not here*: options, privileges, the log, exit codes (`start.maker`); what a server consists of (`app`).
"""

from __future__ import annotations

import os
from functools import partial

from twisted.python import usage

from mailismus.providers import PROVIDERS, Providers
from mailismus.start import maker
from mailismus.start.maker import Build, Options
from mailismus.start.service import MailismusService

__all__ = ["Options", "makeService", "make_service"]


def makeService(options: usage.Options) -> MailismusService:
    """The service, after all has been tried that can refuse a start. Raises `SystemExit` with an exit code of ours."""
    return make_service(options, PROVIDERS)


def make_service(options: usage.Options, providers: Providers) -> MailismusService:
    """The same with other queue providers (`Providers.extended`): a harness's own plugin of `twistd` calls this.
    `<queue provider>` may then be any of their names."""
    return maker.make_service(options, partial(_find_build, providers), providers.names)


def _find_build(providers: Providers) -> Build:
    from mailismus import app  # here: a wrong option is told without loading a server

    if os.geteuid() == 0:
        for name in providers.names:
            providers.named(name).load()
    return partial(app.build, providers=providers)
