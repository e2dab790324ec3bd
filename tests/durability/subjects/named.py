"""Providers under proof by the names that `--provider` takes (`benchmarks.stage.providers`)."""

from __future__ import annotations

from tests.durability.subjects.chunk import CHUNK
from tests.durability.subjects.clustered import CLUSTERED
from tests.durability.subjects.interface import Subject
from tests.durability.subjects.log import LOG
from tests.durability.subjects.naive import NAIVE

SUBJECTS: dict[str, Subject] = {subject.name: subject for subject in (CLUSTERED, LOG, CHUNK, NAIVE)}
