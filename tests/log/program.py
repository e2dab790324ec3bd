"""The programs with the log-structured provider in their table: `python -m tests.log.program NAME ARGUMENTS...`."""

from __future__ import annotations

from mailismus.providers import PROVIDERS
from tests.naive.program import run_with

if __name__ == "__main__":
    run_with(PROVIDERS.extended(log="mailismus.queue.providers.log.entry"))
