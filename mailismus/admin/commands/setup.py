"""`mailismus queue setup`: makes in services elsewhere what the queue needs before its first start."""

from __future__ import annotations

from typing import TextIO

from mailismus.config.values.settings import QueueSettings
from mailismus.queue.provider import IProviders


def run(settings: QueueSettings, providers: IProviders, out: TextIO) -> None:
    """Make what is missing, and print it. Raises `StartError`."""
    provider = providers.named(settings.provider)
    made = provider.set_up(settings)
    for line in made:
        out.write(f"made: {line}\n")
    if not made:
        in_files = f"a queue of provider {provider.name} lies in files, which a start makes"
        out.write(f"Nothing to set up: {in_files if provider.is_in_files else 'all is there'}.\n")
