"""Providers under proof by name, and the option `--provider` of every harness and benchmark."""

from __future__ import annotations

import argparse

from tests.durability.subjects.clustered import CLUSTERED
from tests.durability.subjects.interface import Subject
from tests.durability.subjects.naive import NAIVE

SUBJECTS: dict[str, Subject] = {subject.name: subject for subject in (CLUSTERED, NAIVE)}


def add_option(parser: argparse.ArgumentParser) -> None:
    """Give it the option; `options.provider` is a name of `SUBJECTS`."""
    parser.add_argument("--provider", choices=[*SUBJECTS], default=CLUSTERED.name, help="whose queue (default: %(default)s)")
