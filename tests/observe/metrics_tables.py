"""All tables of metrics, and the page of the manual that is made of them.

python -m tests.observe.metrics_tables      writes what follows the marker of docs/metrics.md anew
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mailismus.deliver import metrics as deliver
from mailismus.observe import audit_log, metrics_process
from mailismus.observe.metrics import Metric, describe
from mailismus.queue import metrics as manager
from mailismus.queue.providers.chunk import metrics as chunk
from mailismus.queue.providers.clustered import metrics as clustered
from mailismus.queue.providers.distributed import metrics as distributed
from mailismus.queue.providers.log import metrics as log
from mailismus.report import metrics as report
from mailismus.start import certificate_ends
from mailismus.submit import metrics as submit

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
MARKER = "<!-- From here on made of the tables in the code: python -m tests.observe.metrics_tables -->\n"

# Any: each table is read of objects of its own.
TABLES: dict[str, tuple[Metric[Any], ...]] = {
    "Mail that comes in": submit.METRICS,
    "Mail that goes out": deliver.METRICS,
    "Names": deliver.NAMES,
    "Reports": report.METRICS,
    "The queue, whatever its provider": manager.FIGURES,
    "What is under way": manager.METRICS,
    "The clustered queue": clustered.METRICS,
    "The log-structured queue": log.METRICS,
    "The queue of chunks": chunk.METRICS,
    "The shared queue, as far as this server has it in its hand": distributed.METRICS,
    "Audit logs": audit_log.METRICS,
    "Certificates": certificate_ends.METRICS,
    "The program": metrics_process.METRICS,
}
METRICS = tuple(metric for table in TABLES.values() for metric in table)


def write_tables() -> str:
    """The part of the page that is made."""
    return "\n".join(describe(title, table) for title, table in TABLES.items())


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m tests.observe.metrics_tables", description="Write docs/metrics.md.").parse_args()
    PAGE.write_text(PAGE.read_text().partition(MARKER)[0] + MARKER + "\n" + write_tables())
