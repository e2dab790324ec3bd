"""The command `mailismus tls DOMAIN|HOST:PORT|IP`.

*Not here*: what it does (`run`), which is imported when it is asked for: other commands need neither the deliverer nor TLS.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from mailismus.config.values.settings import Settings
from mailismus.probe import wording

if TYPE_CHECKING:
    from mailismus.probe.run import MakeLocator


@attrs.frozen
class ProbeTools:
    """The rest of the program, as far as the command needs it."""

    load: Callable[[argparse.Namespace], Settings]
    """The settings that the arguments name, or the defaults where there is no configuration. Raises `ConfigError`."""

    make_locator: MakeLocator
    """Makes what finds hosts as the server does."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser], tools: ProbeTools) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "tls",
        help="show what other servers offer of TLS",
        description=wording.TLS,
        epilog=wording.TLS_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "target", metavar="DOMAIN|HOST:PORT|IP", help="a domain, for the hosts that take its mail, or a host"
    )
    parser.add_argument("--json", action="store_true", help="JSON instead of text, an object for each address")
    parser.set_defaults(run=lambda arguments: _run(arguments, tools))


def _run(arguments: argparse.Namespace, tools: ProbeTools) -> int:
    from mailismus.probe.run import run_probe

    return run_probe(arguments.target, tools.load(arguments), tools.make_locator, is_json=arguments.json)
