"""The table, part 2: `<queue>`.

A setting without `providers` is every provider's. A new provider's own settings stand in the same block, with its name.
"""

from __future__ import annotations

from mailismus.config.table import kinds
from mailismus.config.table.words import Block, Form, Setting

_CLUSTERED = ("clustered",)

PROVIDER = Setting(
    "provider",
    kinds.provider(("clustered",), unbuilt=("memory", "chunk", "log", "distributed")),
    "clustered",
    "How the queue is kept.",
    Form.ATTRIBUTE,
    fixed=True,
)
ROOTPATH = Setting("rootpath", kinds.PATH, "%DIRVAR%/queue", "Where the queue lies.", fixed=True)
MAXCLUSTERSIZE = Setting(
    "maxclustersize",
    kinds.size(),
    "256K",
    "Bytes of one cluster file of new entries; 0: no limit.",
    fixed=True,
    providers=_CLUSTERED,
)
MAXMEMORYQUEUE = Setting(
    "maxmemoryqueue", kinds.count(), "0", "Entries that a task takes at most at once; 0: no limit of its own."
)
RETRY_MAXTIME = Setting("retry_maxtime", kinds.time("100ms"), "72h", "How long an undelivered message is tried.")
RETRY_MAXTIME_REPORTS = Setting(
    "retry_maxtime_reports", kinds.time("100ms"), "24h", "The same for reports of failed delivery."
)
RETRY_DELAYS = Setting("retry_delays", kinds.DELAYS, "15m | 30m | 2h | 4h", "The pauses between attempts; the last repeats.")
MINFREE = Setting(
    "minfree",
    kinds.MINFREE,
    "2%",
    "Bytes and inodes that must stay free (a share, or a SIZE of bytes; 0: off); below, mail is refused for now.",
    fixed=True,
)

SEGMENTSIZE = Setting("segmentsize", kinds.size("1Mi", "4Gi"), "32Mi", "Bytes of one segment file.", fixed=True)
LARGEMSGSIZE = Setting(
    "largemsgsize",
    kinds.size("0", "16Mi"),
    "128Ki",
    "Larger messages get a file of their own at once; 0: all do.",
    fixed=True,
)
MAXAGE = Setting(
    "maxage", kinds.time("0", "1h"), "3s", "What is not delivered by then moves to clusters; 0: at once.", fixed=True
)
MAXSIZE = Setting(
    "maxsize", kinds.size("1Mi"), "256Mi", "Bytes that the journal may hold; beyond, it is emptied early.", fixed=True
)
JOURNAL = Block("journal", "What is written first.", (SEGMENTSIZE, LARGEMSGSIZE, MAXAGE, MAXSIZE), providers=_CLUSTERED)

SPOOL_ROOTPATH = Setting("rootpath", kinds.PATH, "%DIRVAR%/spool", "Where message files lie.", fixed=True)
BUFSIZE = Setting("bufsize", kinds.size("1K", "16Mi"), "16K", "Bytes gathered before a message file is written.", fixed=True)
MAXSPIDCACHE = Setting(
    "maxspidcache", kinds.count(), "250000", "Messages whose references are counted in memory; 0: no limit.", fixed=True
)
HARDLINKS = Setting(
    "hardlinks", kinds.BOOLEAN, "N", "A name (hard link) for each recipient, in place of counting references.", fixed=True
)
SPOOL = Block(
    "spool",
    "Message bytes at rest.",
    (SPOOL_ROOTPATH, BUFSIZE, MAXSPIDCACHE, HARDLINKS),
    original=("silofactor",),
    providers=_CLUSTERED,
)

QUEUE = Block(
    "queue",
    "The queue.",
    (
        *(PROVIDER, ROOTPATH, MAXCLUSTERSIZE, MAXMEMORYQUEUE, RETRY_MAXTIME, RETRY_MAXTIME_REPORTS, RETRY_DELAYS, MINFREE),
        *(JOURNAL, SPOOL),
    ),
    original=(
        "@class",
        "@factory",
        "read_only",
        "prune_graceperiod",
        "deferred_maxignore",
        "retry_granularity",
        "maxfileslist",
    ),
)
