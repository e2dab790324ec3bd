"""The table, part 2: `<queue>`.

A setting without `providers` is every provider's. A new provider's own settings stand in the same block, with its name.
"""

from __future__ import annotations

from mailismus.config.table import kinds
from mailismus.config.table.services import SERVICES
from mailismus.config.table.words import Block, Form, Setting

_CLUSTERED = ("clustered",)
_JOURNALED = ("clustered", "log")
_CHUNK = ("chunk",)

PROVIDER = Setting(
    "provider",
    kinds.provider(("clustered", "log", "chunk", "distributed"), unbuilt=("memory",)),
    "clustered",
    "The queue provider: how the queue is stored. clustered: a journal, then cluster files and message files; log: one log, "
    "which is the queue; chunk: files of its own for each message, named by inode numbers; distributed: RabbitMQ, Cassandra "
    "and an object store, which several servers share, not for production yet.",
    Form.ATTRIBUTE,
    fixed=True,
)
ROOTPATH = Setting("rootpath", kinds.PATH, "%DIRVAR%/queue", "The directory of the queue.", fixed=True)
MAXCLUSTERSIZE = Setting(
    "maxclustersize",
    kinds.size(),
    "256K",
    "Maximum bytes of one cluster file of new entries. 0: no limit.",
    fixed=True,
    providers=_CLUSTERED,
)
CONF_SPLIT = Setting(
    "conf_split",
    kinds.count(1, 1000),
    "23",
    "Number of parts of the directories in parts: the file N lies in part N modulo this; a prime number spreads best. It "
    "can change while the queue is empty, or by a conversion.",
    fixed=True,
    providers=_CHUNK,
)
MAXMEMORYQUEUE = Setting(
    "maxmemoryqueue",
    kinds.count(),
    "0",
    "Maximum entries that a task takes from the queue at once. 0: the task's queuecache is the limit.",
)
RETRY_MAXTIME = Setting(
    "retry_maxtime", kinds.time("100ms"), "72h", "How long delivery of a message is retried before it fails."
)
RETRY_MAXTIME_REPORTS = Setting(
    "retry_maxtime_reports", kinds.time("100ms"), "24h", "How long delivery of a report is retried before it is discarded."
)
RETRY_DELAYS = Setting(
    "retry_delays", kinds.DELAYS, "15m | 30m | 2h | 4h", "The delays between attempts; the last one repeats."
)
MINFREE = Setting(
    "minfree",
    kinds.MINFREE,
    "2%",
    "Free bytes and inodes that are kept: a share, or bytes as a size. With less, mail is refused (452). 0: off.",
    fixed=True,
)

SEGMENTSIZE = Setting(
    "segmentsize", kinds.size("1Mi", "4Gi"), "32Mi", "Bytes of one segment file of the journal or log.", fixed=True
)
LARGEMSGSIZE = Setting(
    "largemsgsize",
    kinds.size("0", "16Mi"),
    "128Ki",
    "Messages above this size are written to message files, not into the journal or log. 0: all messages.",
    fixed=True,
)
MAXAGE = Setting(
    "maxage",
    kinds.time("0", "1h"),
    "3s",
    "The age at which undelivered mail moves from the journal to clusters. 0: at once.",
    fixed=True,
    providers=_CLUSTERED,
)
MAXSIZE = Setting(
    "maxsize",
    kinds.size("1Mi"),
    "256Mi",
    "Bytes of the journal at which a checkpoint begins before maxage.",
    fixed=True,
    providers=_CLUSTERED,
)
JOURNAL = Block(
    "journal",
    "The journal: new mail is written here first, and many messages share one barrier. With provider log, the log.",
    (SEGMENTSIZE, LARGEMSGSIZE, MAXAGE, MAXSIZE),
    providers=_JOURNALED,
)

SPOOL_ROOTPATH = Setting("rootpath", kinds.PATH, "%DIRVAR%/spool", "The directory of message files.", fixed=True)
BUFSIZE = Setting(
    "bufsize",
    kinds.size("1K", "16Mi"),
    "16K",
    "Bytes that are buffered before they are written to a message file.",
    fixed=True,
)
MAXSPIDCACHE = Setting(
    "maxspidcache",
    kinds.count(),
    "250000",
    "Maximum messages whose references are counted in memory. 0: no limit.",
    fixed=True,
)
HARDLINKS = Setting(
    "hardlinks",
    kinds.BOOLEAN,
    "N",
    "Use a hard link for each recipient in place of reference counts.",
    fixed=True,
    providers=_CLUSTERED,
)
SPOOL = Block(
    "spool",
    "The spool: message files of mail that left the journal, and of large messages.",
    (SPOOL_ROOTPATH, BUFSIZE, MAXSPIDCACHE, HARDLINKS),
    original=("silofactor",),
    providers=_JOURNALED,
)

QUEUE = Block(
    "queue",
    "The queue: undelivered mail on disk.",
    (
        *(PROVIDER, ROOTPATH, MAXCLUSTERSIZE, CONF_SPLIT, MAXMEMORYQUEUE),
        *(RETRY_MAXTIME, RETRY_MAXTIME_REPORTS, RETRY_DELAYS, MINFREE, JOURNAL, SPOOL, *SERVICES),
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
