"""The table, part 1: `<application>`, `<directory>`, `<message_store>` and `<admin>`."""

from __future__ import annotations

from mailismus.config.table import kinds
from mailismus.config.table.words import Block, Form, Occurs, Setting

ANNOUNCEHOST = Setting(
    "announcehost",
    kinds.DOMAIN,
    "%SYSNAME%",
    "This host's name as told to other servers; by default its full name.",
    example="mx.example.net",
    fixed=True,
)
ROOT = Setting(
    "root", kinds.ROOT_PATH, "..", "%DIRTOP%: where the other paths begin; from the folder of this file.", fixed=True
)
CONFIG = Setting("config", kinds.PATH, "config", "%DIRCONF%: files named in this one.", fixed=True)
VAR = Setting("var", kinds.PATH, "var", "%DIRVAR%: what the server keeps: queue, spool, mail.", fixed=True)
LOGS = Setting("logs", kinds.PATH, "var/logs", "%DIRLOG%: audit logs.", fixed=True)
STOP_TIMEOUT = Setting(
    "stop_timeout",
    kinds.time("100ms", "1h"),
    "30s",
    "How long a stop waits for transactions whose final dot has come or gone.",
)

DIRPATHS = Block(
    "dirpaths", "Directories, and the tokens that stand for them.", (ROOT, CONFIG, VAR, LOGS), original=("tmp", "rootpath")
)
APPLICATION = Block(
    "application", "The program as a whole.", (ANNOUNCEHOST, DIRPATHS, STOP_TIMEOUT), original=("prodname", "database")
)

DOMAINS = Setting(
    "domains",
    kinds.NAMES_OR_FILES,
    "",
    "Local domains, or files (anything with a /) that name one on each line.",
    sample="example.net",
)
USERS = Setting(
    "users",
    kinds.NAMES_OR_FILES,
    "",
    "Users, valid at every local domain, or files that name one on each line.",
    sample="%DIRCONF%/users",
)
POSTMASTER = Setting(
    "postmaster",
    kinds.USER,
    "",
    "The user who gets postmaster's mail; needed where there are local domains.",
    sample="alice",
)
DIRECTORY = Block(
    "directory",
    "Whose mail stays here.",
    (DOMAINS, USERS, POSTMASTER),
    unbuilt=("aliases",),
    original=("@enabled", "@class", "virtualusers", "plainpass"),
)

USERPATH = Setting("userpath", kinds.PATH, "%DIRVAR%/ms", "Where the users' directories lie.")
MAILPATH = Setting("mailpath", kinds.INNER_PATH, "Maildir", "A user's maildir is userpath/USER/mailpath.")
MESSAGE_STORE = Block(
    "message_store",
    "Where delivered mail lies.",
    (USERPATH, MAILPATH),
    original=(
        *("@enabled", "@class", "dotstuffing", "exclusive", "filename_colon", "filename_comma"),
        *("chmod_tree", "chmod_msgfile", "hdrbufsiz", "msgbufsiz"),
    ),
)

SOCKET = Setting(
    "socket",
    kinds.PATH,
    "%DIRVAR%/run/admin.sock",
    "Where the mailismus command meets the running server. The last part of the path has at most 80 bytes.",
    fixed=True,
)
METRICS_INTERFACE = Setting(
    "interface",
    kinds.INTERFACE,
    "127.0.0.1",
    "The IP address it listens on. Everybody who can connect may read: there is no password.",
    Form.ATTRIBUTE,
    fixed=True,
)
METRICS_PORT = Setting(
    "port", kinds.port(0), "9925", "Its TCP port; 0: any free one, see the log.", Form.ATTRIBUTE, fixed=True
)
METRICS = Block(
    "metrics",
    "Counters for Prometheus, at http://INTERFACE:PORT/metrics; without this block there is none.",
    (METRICS_INTERFACE, METRICS_PORT),
    Occurs.OPTIONAL,
)
ADMIN = Block("admin", "Administration.", (SOCKET, METRICS))
