"""The programs with the naive provider in their table: `python -m tests.naive.program twistd|mailismus ARGUMENTS...`."""

from __future__ import annotations

import sys
from functools import partial

from mailismus.providers import PROVIDERS, Providers

NAIVE = PROVIDERS.extended(naive="tests.naive.entry")


def main() -> None:
    """Run the program that is named first, with the naive provider."""
    run_with(NAIVE)


def run_with(providers: Providers) -> None:
    """Run the program that is named first with these providers."""
    name = sys.argv.pop(1)
    sys.argv[0] = name
    if name == "mailismus":
        from mailismus.__main__ import main as run

        sys.exit(run(providers=providers))
    from twisted.scripts.twistd import run as run_twistd

    from mailismus import run as service

    service.makeService = partial(service.make_service, providers=providers)
    run_twistd()  # type: ignore[no-untyped-call]  # Twisted has no annotation here


if __name__ == "__main__":
    main()
