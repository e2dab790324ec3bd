"""Why no connection with the database was made, in words (pure)."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mailismus.queue.providers.distributed.stores.failure import REASON_LENGTH, reason_of


def why_not_connected(error: BaseException, datacenter: str) -> str:
    """What the driver's error says, node by node. A node that answers and is in another datacenter is not asked: of these
    the driver tells the addresses alone."""
    nodes = getattr(error, "errors", None)
    if isinstance(nodes, Mapping) and nodes:
        return "; ".join(f"{node}: {_of_node(why)}" for node, why in nodes.items())[:REASON_LENGTH]
    if isinstance(nodes, list) and nodes:
        addresses = ", ".join(map(str, nodes))
        return f"no node of datacenter {datacenter} at {addresses}: look at <cassandra datacenter>; nodetool status shows it"
    return reason_of(error)


def _of_node(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    told = getattr(error, "errors", None)  # of what the driver did not wait for any longer
    return told if isinstance(told, str) else reason_of(error)
