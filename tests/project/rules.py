"""The import rule: which package may import which, and who may touch the outside, read from the source with `ast`.

Every rule is a function of a tree of sources that gives complaints, so that a test can show that it can fail.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = "mailismus"
TOP = 6
LEVELS = {
    "errors": -1,
    "mail": 0,
    "smtp": 1,
    "disk": 1,
    "config": 1,
    "observe": 1,
    "net": 1,
    "dns": 1,
    "journal": 2,
    "spool": 2,
    "maildir": 2,
    "queue": 3,
    "queue.providers.clustered": 4,
    "queue.providers.memory": 4,
    "submit": 5,
    "deliver": 5,
    "report": 5,
    "admin": 5,
    "app": TOP,
    "start": TOP,
    "__main__": TOP,
}
"""Lower levels are imported by higher ones; packages of one level never import one another, but for the top."""

IMPURE = frozenset({"twisted", "os", "time", "random", "socket", "threading", "subprocess", "secrets"})
PURE = (
    *(
        "mail",
        "smtp",
        "errors",
        "observe.audit",
        "observe.metrics",
        "observe.text",
        "journal.batch",
        "spool.silo",
        "spool.idtable",
        "spool.references",
        "spool.unsure",
        "queue.finding",
        "queue.providers.clustered.calendar",
        "queue.providers.clustered.fsck.lines",
        "queue.providers.clustered.fsck.onebyte",
        "queue.providers.clustered.cluster",
        "queue.providers.clustered.counting",
        "queue.providers.clustered.plan",
        "queue.providers.clustered.line",
        "queue.providers.clustered.resting",
        "queue.providers.clustered.young",
        "queue.retry",
        "queue.audited",
        "queue.disposition",
        "queue.rounds",
        "report.compose",
        "report.delivery_status",
        "report.excerpt",
        "report.notice",
        "report.wording",
        "submit.policy",
        "submit.admission",
        "submit.ending",
        "deliver.hanging",
        "deliver.route",
        "deliver.turns",
        "deliver.hosts",
        "deliver.idle",
        "deliver.habits",
        "deliver.objection",
    ),
    *(
        "config.settings",
        "config.units",
        "config.names",
        "config.blocks",
        "config.kinds",
        "config.table",
        "config.table_root",
    ),
    *("config.table_application", "config.table_queue", "config.table_submit", "config.table_deliver"),
    "config.table_report",
    *("dns.name", "dns.answer", "dns.message", "dns.cache", "dns.servers", "dns.counters", "dns.chance"),
    *("dns.addresses", "dns.choice"),
    *("config.openfiles", "config.check", "config.sample", "config.schema", "config.advice", "config.advice_places"),
    *(
        "config.manual",
        "config.roff",
        "admin.screen",
        "admin.shape",
        "admin.listing",
        "admin.stuck",
        "admin.wording",
        "start.wording",
    ),
)
"""Packages and modules that take time, chance and bytes as arguments."""

PURE_EXEMPT = {
    (
        "mail.networks",
        "socket",
    ): "inet_pton alone, a plain function of text: three times as fast as ipaddress, for each client",
}

REACTOR_USERS = frozenset({"start.maker"})
"""The start-up code: whoever else needs the reactor is given it."""

SHARED_CONFIG = (f"{ROOT}.config.settings.", f"{ROOT}.config.units.", f"{ROOT}.config.openfiles.")
"""What everyone may know of the configuration: the values, how people write times and sizes, how open files are shared."""

WRITERS = tuple(f"{ROOT}.config.{name}" for name in ("sample.", "schema.", "manual", "roff"))
"""What start-up code may have written from the table, without knowing it."""

LOADER_USERS = frozenset({"app", "start.maker", "start.reload", "start.configcommands", "__main__"})

FILE_USERS = {
    "disk": "the one door to the file system",
    "maildir": "maildirs are no part of the queue: other programs work in them at the same time",
    "admin.socketfile": "the socket's directory, and a socket left over",
    "admin.socket": "the socket, at a stop",
    "dns.system": "reads /etc/resolv.conf and /etc/hosts",
    "config.document": "reads the configuration",
    "config.lists": "reads the lists that the configuration names",
    "config.certificates": "reads the certificates that the configuration names",
    "config.hostname": "reads /etc/hosts",
    "config.ground": "reads /proc, and files of names, to advise about them",
    "admin.history": "what was typed into the shell, in the user's home",
    "observe.audit_file": "the audit logs",
    "start.output": "the log",
    "start.maker": "/dev/null in place of a standard output that is closed",
    "admin.unread": "/dev/null in place of a standard output that nobody reads",
}
FILE_CALLS = frozenset(
    {"open", "os.open", "os.fdopen", "io.open", "os.mkfifo", "os.mkdir", "os.makedirs", "os.rename", "os.unlink"}
)

Sources = dict[str, ast.Module]


def read_sources(directory: Path) -> Sources:
    """Every module of the package, by its name below it (`queue.retry`; a package's own is its name)."""
    sources = {}
    for path in sorted(directory.rglob("*.py")):
        parts = path.relative_to(directory).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        sources[name] = ast.parse(path.read_text(), str(path))
    return sources


def package_of(name: str) -> str:
    """The entry of `LEVELS` that a module belongs to, the longest that fits; empty for the root."""
    fitting = [package for package in LEVELS if name == package or name.startswith(package + ".")]
    return max(fitting, key=len, default="")


def imports_of(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and full name of everything imported, at any depth: `a.b` for `import a.b`, `a.b.c` for `from a.b import c`."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide what is imported"
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def _is_within(name: str, places: frozenset[str] | tuple[str, ...] | dict[str, str]) -> bool:
    return any(name == place or name.startswith(place + ".") for place in places)


def check_levels(sources: Sources) -> Iterator[str]:
    """A package imports only packages of a lower level."""
    for name, module in sources.items():
        own = package_of(name)
        if name and not own:
            yield f"{name} belongs to no package of the table of levels"
            continue
        for line, imported in imports_of(module):
            if not imported.startswith(ROOT + "."):
                continue
            other = package_of(imported.removeprefix(ROOT + "."))
            if not other or other == own or not own:
                continue
            if not (LEVELS[other] < LEVELS[own] or LEVELS[own] == LEVELS[other] == TOP):
                yield f"{name}:{line} (level {LEVELS[own]}) imports {imported} (level {LEVELS[other]})"


def check_loader(sources: Sources) -> Iterator[str]:
    """Settings are handed down: only the top loads a configuration, and nobody below it knows the table."""
    for name, module in sources.items():
        if package_of(name) == "config" or name in LOADER_USERS:
            continue
        for line, imported in imports_of(module):
            if imported.startswith(f"{ROOT}.config.") and not imported.startswith(SHARED_CONFIG):
                if name.startswith("start.") and imported.startswith(WRITERS):
                    continue
                yield f"{name}:{line} imports {imported}: only settings and units are for everyone"


def check_purity(sources: Sources) -> Iterator[str]:
    """What is pure reaches for nothing outside."""
    for name, module in sources.items():
        if not _is_within(name, PURE):
            continue
        for line, imported in imports_of(module):
            first = imported.partition(".")[0]
            if first in IMPURE and (name, first) not in PURE_EXEMPT:
                yield f"{name}:{line} is pure and imports {imported}"


def check_reactor(sources: Sources) -> Iterator[str]:
    """Nobody but start-up code takes the global reactor."""
    for name, module in sources.items():
        for line, imported in imports_of(module):
            if imported.startswith("twisted.internet.reactor") and name not in REACTOR_USERS:
                yield f"{name}:{line} imports the global reactor"


def check_files(sources: Sources) -> Iterator[str]:
    """Nobody opens, makes or removes a file but by the one door."""
    for name, module in sources.items():
        if _is_within(name, FILE_USERS):
            continue
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in FILE_CALLS:
                yield f"{name}:{node.lineno} calls {ast.unparse(node.func)}"
        for line, imported in imports_of(module):
            if imported.partition(".")[0] in ("pathlib", "shutil", "tempfile"):
                yield f"{name}:{line} imports {imported}"
