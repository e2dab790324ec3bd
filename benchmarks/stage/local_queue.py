"""Settings of a queue that a benchmark opens in its own process, below a directory."""

from __future__ import annotations

from pathlib import Path

from mailismus.config.values.settings import JournalSettings, MinFree, QueueSettings, RetrySettings, SpoolSettings


def local_settings(
    directory: Path, provider: str, *, segment_bytes: int = 32 << 20, large_bytes: int = 131_072
) -> QueueSettings:
    """`queue` and `spool` below this directory, with the defaults of the configuration but for `minfree`, which is off."""
    return QueueSettings(
        provider=provider,
        rootpath=str(directory / "queue"),
        maxclustersize=256_000,
        conf_split=23,
        maxmemoryqueue=0,
        retry=RetrySettings(maxtime_s=259_200, maxtime_reports_s=86_400, delays_s=(900.0,)),
        minfree=MinFree(0.0, 0),
        journal=JournalSettings(segment_bytes, large_bytes, 3.0, 256 << 20),
        spool=SpoolSettings(str(directory / "spool"), 16_384, 250_000, hardlinks=False),
    )
