"""The program as `twistd` and `twist` run it: joins the start and the composition.

*Not here*: options, privileges, the log, exit codes (`start.maker`); the parts of a server (`app`).
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
    """Return the service, after every reason to refuse a start was checked. Raises `SystemExit` with an exit code of
    ours."""
    return make_service(options, PROVIDERS)


def make_service(options: usage.Options, providers: Providers) -> MailismusService:
    """Return the service with other queue providers (`Providers.extended`): for a harness's own plugin of `twistd`.
    `<queue provider>` may then be any of their names."""
    return maker.make_service(options, partial(_find_build, providers), providers.names)


def _find_build(providers: Providers) -> Build:
    from mailismus import app  # here: a wrong option is reported without loading a server

    if os.geteuid() == 0:
        for name in providers.names:
            providers.named(name)  # not all of it: that of the settings alone is loaded
    return partial(app.build, providers=providers)
