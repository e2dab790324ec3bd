"""The table, part 1: `<application>`, `<directory>`, `<message_store>` and `<admin>`."""

from __future__ import annotations

from mailismus.config.table import kinds
from mailismus.config.table.words import Block, Form, Occurs, Setting

ANNOUNCEHOST = Setting(
    "announcehost",
    kinds.DOMAIN,
    "%SYSNAME%",
    "The host name that this server announces to other servers. Default: the fully qualified name of this host.",
    example="mx.example.net",
    fixed=True,
)
ROOT = Setting(
    "root",
    kinds.ROOT_PATH,
    "..",
    "%DIRTOP%: the root of other relative paths. It is relative to the directory of the configuration file.",
    fixed=True,
)
CONFIG = Setting(
    "config", kinds.PATH, "config", "%DIRCONF%: the directory of files that the configuration names.", fixed=True
)
VAR = Setting("var", kinds.PATH, "var", "%DIRVAR%: the directory of the server's data: queue, spool, mail.", fixed=True)
LOGS = Setting("logs", kinds.PATH, "var/logs", "%DIRLOG%: the directory of audit logs.", fixed=True)
STOP_TIMEOUT = Setting(
    "stop_timeout",
    kinds.time("100ms", "1h"),
    "30s",
    "How long a stop waits for transactions whose final dot was received or sent.",
)

DIRPATHS = Block(
    "dirpaths", "Directories and the tokens that stand for them.", (ROOT, CONFIG, VAR, LOGS), original=("tmp", "rootpath")
)
APPLICATION = Block(
    "application",
    "Settings of the whole program.",
    (ANNOUNCEHOST, DIRPATHS, STOP_TIMEOUT),
    original=("prodname", "database"),
)

DOMAINS = Setting(
    "domains",
    kinds.NAMES_OR_FILES,
    "",
    "Local domains. A value with a / is a file with one domain a line.",
    sample="example.net",
)
USERS = Setting(
    "users",
    kinds.NAMES_OR_FILES,
    "",
    "Local users; each is valid at every local domain. A value with a / is a file with one user a line.",
    sample="%DIRCONF%/users",
)
POSTMASTER = Setting(
    "postmaster",
    kinds.USER,
    "",
    "The user who receives mail for postmaster. Required if there are local domains.",
    sample="alice",
)
DIRECTORY = Block(
    "directory",
    "Local domains and users.",
    (DOMAINS, USERS, POSTMASTER),
    unbuilt=("aliases",),
    original=("@enabled", "@class", "virtualusers", "plainpass"),
)

USERPATH = Setting("userpath", kinds.PATH, "%DIRVAR%/ms", "The directory of the users' directories.")
MAILPATH = Setting("mailpath", kinds.INNER_PATH, "Maildir", "The maildir in a user's directory: userpath/USER/mailpath.")
NAMES = Setting(
    "names",
    kinds.FILE_NAMES,
    "MPQ",
    "The parts of the names of files in maildirs, in order: M microseconds, P process, Q count of deliveries, R random, "
    "I inode, # number since the boot, X number of boots; or n_m.",
)
QUOTA_FULL = Setting(
    "quota_full",
    kinds.choice(("defer", "bounce")),
    "defer",
    "What becomes of mail for a maildir whose quota is used up: defer tries it again (4.2.2), bounce reports it to its "
    "sender (5.2.2).",
)
LMTP_ADDRESS = Setting(
    "address",
    kinds.LMTP_SERVER,
    None,
    "The Unix socket of the LMTP server, or its host and port.",
    Form.ATTRIBUTE,
    example="unix:/run/dovecot/lmtp",
)
LMTP = Block(
    "lmtp",
    "A server that takes the mail of local users over LMTP, such as Dovecot, in place of maildirs.",
    (LMTP_ADDRESS,),
    Occurs.OPTIONAL,
)
MESSAGE_STORE = Block(
    "message_store",
    "Maildirs of local users, or the LMTP server that keeps their mail.",
    (USERPATH, MAILPATH, NAMES, QUOTA_FULL, LMTP),
    original=(
        *("@enabled", "@class", "dotstuffing", "exclusive", "filename_colon", "filename_comma"),
        *("chmod_tree", "chmod_msgfile", "hdrbufsiz", "msgbufsiz"),
    ),
)

SOCKET = Setting(
    "socket",
    kinds.PATH,
    "%DIRVAR%/run/admin.sock",
    "The Unix socket by which the mailismus command reaches the running server. Its file name has at most 80 bytes.",
    fixed=True,
)
METRICS_INTERFACE = Setting(
    "interface",
    kinds.INTERFACE,
    "127.0.0.1",
    "The IP address of the metrics listener. There is no password: every client that can connect can read.",
    Form.ATTRIBUTE,
    fixed=True,
)
METRICS_PORT = Setting(
    "port",
    kinds.port(0),
    "9925",
    "The TCP port of the metrics listener. 0: a free port, which the log names.",
    Form.ATTRIBUTE,
    fixed=True,
)
METRICS = Block(
    "metrics",
    "Metrics for Prometheus at http://INTERFACE:PORT/metrics. Without this block there are none.",
    (METRICS_INTERFACE, METRICS_PORT),
    Occurs.OPTIONAL,
)
WEB_INTERFACE = Setting(
    "interface",
    kinds.INTERFACE,
    "127.0.0.1",
    "The IP address of the web page. One that is not a loopback address is refused without a <passwordfile>.",
    Form.ATTRIBUTE,
    fixed=True,
)
WEB_PORT = Setting(
    "port",
    kinds.port(0),
    "8080",
    "The TCP port of the web page. 0: a free port, which the log names.",
    Form.ATTRIBUTE,
    fixed=True,
)
WEB_NAMES = Setting(
    "names",
    kinds.HOST_NAMES,
    "",
    "Names by which browsers reach the page, beside addresses and localhost; and announcehost, if the interface is not a "
    "loopback address. A request for another name is refused: so no other site reads this page by a name of its own.",
    example="queue.example.net",
)
WEB_USERNAME = Setting("username", kinds.TEXT, "admin", "The name to log in with, if there is a password.")
WEB_PASSWORDFILE = Setting(
    "passwordfile",
    kinds.OPTIONAL_PATH,
    "",
    "File with the password in one line. It belongs to the server's user or root, and nobody else may read it. It is read "
    "at the start and at a reload. Without it no password is asked for. Browsers send it by HTTP: beyond this host put a "
    "server with TLS before the page.",
    example="%DIRCONF%/web.secret",
)
WEB = Block(
    "web",
    "A page for browsers at http://INTERFACE:PORT/: figures, next hops, failures, history, and a search over the queue. It "
    "reads only. Without this block there is none.",
    (WEB_INTERFACE, WEB_PORT, WEB_NAMES, WEB_USERNAME, WEB_PASSWORDFILE),
    Occurs.OPTIONAL,
)
UNDO = Setting(
    "undo",
    kinds.time(),
    "24h",
    "How long mail that `queue delete` deleted is kept, so that `queue undo` can restore it. 0: it is gone at once.",
)
UNDOSPACE = Setting(
    "undospace",
    kinds.size(),
    "1G",
    "How much deleted mail is kept. What would be more is gone at once, and the act says how much that was. 0: no limit.",
)
ADMIN = Block("admin", "Administration.", (SOCKET, METRICS, WEB, UNDO, UNDOSPACE))
