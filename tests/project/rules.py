"""The import rule: which package may import which, and who may touch the outside, read from the source with `ast`.

Every rule is a function of a tree of sources that gives complaints, so that a test can show that it can fail.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = "mailismus"
LEVELS = {
    "errors": -1,
    "mail": 0,
    "regular_file": -1,
    "secret_file": 0,
    "disk": 0,
    "smtp": 1,
    "config": 1,
    "observe": 1,
    "net": 1,
    "dns": 1,
    "journal": 2,
    "spool": 2,
    "chunks": 2,
    "maildir": 3,
    "queue": 3,
    "queue.providers.clustered": 4,
    "queue.providers.log": 4,
    "queue.providers.chunk": 4,
    "queue.providers.distributed": 4,
    "queue.providers.memory": 4,
    "submit": 5,
    "deliver": 5,
    "report": 5,
    "admin": 5,
    "start": 6,
    "probe": 6,
    "inject": 6,
    "top": 6,
    "plan": 6,
    "web": 6,
    "sendmail": 6,
    "surgery": 6,
    "providers": 6,
    "demo": 7,
    "app": 7,
    "run": 8,
    "__main__": 8,
    "programs": 9,
}
"""Lower levels are imported by higher ones; packages of one level never import one another."""

OWN = "."
"""In `ROOMS`: the modules of the package that stand in no room."""

ROOMS = {
    "deliver": (
        *("mailboxes", "limits", "security", "routes", "log_line", "jobs", "knowledge", "schedule"),
        *("counters", "queue_seam", "context", "settling", "giving_back", "lookups", "authentication", "sessions"),
        *("local", "why"),
        OWN,
    ),
    "config": ("values", "table", "read", "advice", "generate", "edit", OWN),
    "admin": ("model", "protocol", "render", "server", "client", "commands", OWN),
    "smtp": (OWN, "auth", "server", "client"),
    "start": (OWN, "commands"),
    "web": ("wire", "history", "pages", "pictures", "search", "site", "task", "assembly"),
    "queue": (
        "redirect",
        "content",
        "servers",
        "interface",
        "due",
        "files",
        "fsck",
        "clock",
        "outcome",
        OWN,
        "acts",
        "convert",
        "providers",
    ),
    "queue.providers.clustered": (
        *("format", "index", "commit", "read", "reclaim", "checkpoint", "recovery", "control", "conversion"),
        OWN,
        "fsck",
        "entry",
    ),
    "queue.fsck": (OWN, "local"),
    "queue.providers.clustered.fsck": ("evidence", "repairs", "findings", OWN),
    "queue.providers.log": ("format", "index", "commit", "read", "recovery", "control", "conversion", OWN, "fsck", "entry"),
    "queue.providers.distributed": (
        *("stores", "regular", "format", "news", "circuits", "view", "identity", "limits", "setup", "counts"),
        *("enqueue", "content", "due", "hand", "settle", "browse", "sweep"),
        OWN,
        *("stopped", "dump", "fsck", "conversion"),
        "entry",
    ),
    "queue.providers.distributed.stores": (
        *("failure", "together", "in_time", "quiet", "broker", "rows", "objects", "stores", "libraries"),
        *("rabbitmq", "cassandra", "http"),
        OWN,
    ),
    "queue.providers.chunk": ("format", "index", "write", "recovery", "read", "control", "conversion", OWN, "fsck", "entry"),
}
"""The rooms of a package, bottom first: each is imported by itself and by those behind it. A room is a sub-package, or one
module."""

IMPURE = frozenset({"twisted", "os", "time", "random", "socket", "threading", "subprocess", "secrets"})
PURE = (
    "errors",
    "mail",
    "smtp",
    *("config.values", "config.table", "config.generate", "config.read.check", "config.advice.values"),
    *("config.advice.sentence", "config.advice.delivery", "config.read.destinations"),
    *("config.read.source", "config.read.encoding"),
    *("config.edit.path", "config.edit.escape", "config.edit.layout", "config.edit.change"),
    *("config.advice.places", "config.advice.certificates"),
    *("dns.name", "dns.guard", "dns.answer", "dns.message", "dns.cache", "dns.servers", "dns.counters", "dns.randomness"),
    *("dns.addresses", "dns.choice"),
    *(
        "observe.habits",
        "deliver.knowledge.habits",
        "deliver.knowledge.hop_habits",
        "deliver.knowledge.in_use",
        "plan.forecast",
        "plan.fit",
        "plan.render",
        "plan.wording",
    ),
    *(
        "observe.audit",
        "observe.metrics",
        "observe.text",
        "observe.overview",
        "deliver.knowledge.recent",
        "deliver.why.overview",
    ),
    *("observe.figures", "observe.hop_order", "observe.hold_words", "observe.history", "observe.amounts", "observe.grades"),
    *("journal.batch", "journal.frame"),
    *("chunks.names", "chunks.unit"),
    *("spool.silo", "spool.idtable", "spool.references", "spool.unsure"),
    *("queue.fsck.finding", "queue.fsck.faults", "queue.gaps", "queue.clock.ages", "queue.outcome", "queue.audited"),
    *("queue.rounds", "queue.words", "queue.entering", "queue.due", "queue.files.recipient_line"),
    *("queue.providers.clustered.format", "queue.providers.clustered.index"),
    *("queue.providers.log.format", "queue.providers.log.index"),
    *("queue.providers.chunk.format", "queue.providers.chunk.index", "queue.providers.chunk.write.ways"),
    *("queue.providers.distributed.stores.failure", "queue.providers.distributed.stores.cassandra.statements"),
    *("queue.providers.distributed.stores.http.sigv4", "queue.providers.distributed.stores.http.listing"),
    *("queue.providers.distributed.format", "queue.providers.distributed.view.change"),
    *("queue.providers.distributed.circuits.circuit", "queue.providers.distributed.content.absent"),
    *("queue.providers.distributed.enqueue.plan", "queue.providers.distributed.settle.plan"),
    *("queue.providers.distributed.hand.held", "queue.providers.distributed.hand.hand"),
    *("queue.providers.distributed.due.schedule", "queue.providers.distributed.content.kept"),
    *("queue.providers.distributed.browse.overlay", "queue.providers.distributed.dump.cells"),
    *("queue.limits", "queue.providers.distributed.limits.row", "queue.providers.distributed.limits.cutting"),
    *("queue.providers.distributed.counts.numbers", "queue.servers", "admin.render.servers", "admin.protocol.servers"),
    *("queue.providers.distributed.fsck.kinds", "queue.providers.distributed.content.whole"),
    "queue.providers.clustered.checkpoint.policy",
    *("queue.providers.clustered.read.counting", "queue.providers.clustered.read.count_plan"),
    *("queue.providers.clustered.fsck.evidence.bad_lines", "queue.fsck.local.one_byte"),
    *("report.compose", "report.delivery_status", "report.excerpt", "report.notice", "report.verdict"),
    "report.wording",
    *("submit.policy", "submit.admission", "submit.ending", "submit.lines"),
    *(
        "deliver.routes.route",
        "deliver.knowledge.host_records",
        "deliver.knowledge.quirks",
        "deliver.sessions.capabilities",
        "deliver.jobs.smtputf8",
        "deliver.knowledge.blame",
        "deliver.jobs.concurrency",
    ),
    *(
        "deliver.authentication.failure",
        "deliver.local.hanging",
        "deliver.local.pace",
        "deliver.local.turns",
        "deliver.limits",
        "deliver.schedule",
        "deliver.security",
    ),
    *("deliver.why.hold", "deliver.why.sentences", "deliver.why.limits", "deliver.why.survey", "deliver.why.holds"),
    *("queue.redirect", "queue.addressed", "queue.waiting", "queue.pages", "queue.flushes", "queue.coming_back"),
    *("queue.acts.act", "queue.acts.marking", "queue.acts.decide", "queue.acts.lines", "queue.acts.record"),
    *(
        "admin.model",
        "admin.protocol.fields",
        "admin.protocol.wire",
        "admin.protocol.settings",
        "admin.protocol.overview",
        "admin.protocol.habits",
        "admin.render",
        "admin.commands.wording",
        "admin.commands.upkeep_wording",
    ),
    *("start.commands.wording", "start.commands.completion_scripts"),
    "inject.wording",
    *("top.cells", "top.wording", "top.plot", "top.state", "top.table", "top.head", "top.detail"),
    "top.layout",
    *("web.wire.answer", "web.wire.password", "web.wire.guard", "web.history.samples"),
    *("web.pages.plot", "web.pages.day", "web.pages.front", "web.pages.listing", "web.pages.message"),
    *("demo.manners", "demo.letters", "demo.playground", "demo.wording"),
    *("sendmail.wording", "sendmail.options", "sendmail.addresses", "sendmail.header", "sendmail.drop_format"),
    *("probe.certificate", "probe.report", "probe.render", "probe.transcript", "probe.assess", "probe.wording"),
)
"""Packages and modules that take time, chance and bytes as arguments."""

PURE_EXEMPT = {
    (
        "mail.networks",
        "socket",
    ): "inet_pton alone, a plain function of text: three times as fast as ipaddress, for each client",
}

REACTOR_USERS = frozenset({"start.maker", "probe.run", "demo.keeper"})
"""The start-up code, the one command that connects with other servers, and the process of a playground: whoever else needs
the reactor is given it."""

PROVIDERS = f"{ROOT}.queue.providers"
PROVIDER_TABLE = "providers"
"""The one module that names the providers; it imports them by the names in its table, when they are asked for."""

SHARED_CONFIG = (f"{ROOT}.config.values.",)
"""What everyone may know of the configuration: the values, how people write times and sizes, how open files are shared."""

WRITERS = (f"{ROOT}.config.generate.",)
"""What start-up code may have written from the table, without knowing it."""

LOADER_USERS = frozenset(
    {
        "app",
        "start.maker",
        "start.reload",
        "start.commands.config",
        "start.commands.config_advice",
        "start.commands.config_change",
        "start.commands.config_diff",
        "__main__",
        "programs",
    }
)

FILE_USERS = {
    "disk": "the one door to the file system",
    "maildir.mounts": "reads the mount table, a file of the system",
    "admin.protocol.socket_file": "the socket's directory, and a socket left over",
    "admin.server.task": "the socket, at a stop",
    "regular_file": "reads what others wrote: the configuration, the files that it names, those of the system",
    "secret_file": "reads passwords and tokens of the configuration, and tells when one has changed",
    "admin.commands.new_file": "a picture that a user has asked for, where he has asked for it",
    "admin.commands.history": "what was typed into the shell, in the user's home",
    "observe.audit_file": "the audit logs",
    "config.edit.replacement": "the configuration file, for `config set`",
    "start.output": "the log",
    "demo.keeper": "the directory of a playground, and the log of its server",
    "inject.kept": "a temporary file, for a message on standard input",
    "sendmail.message": "the same, for sendmail",
    "sendmail.places": "the directories of sendmail, of other modes and users than those of the queue",
    "sendmail.drop": "a file in the drop directory, by any user, of another mode and barrier than files of the queue",
    "sendmail.shelf": "files in the drop directory, which any user may have made in any way",
    "start.maker": "/dev/null in place of a standard output that is closed",
    "admin.commands.broken_pipe": "/dev/null in place of a standard output that nobody reads",
}
FILE_CALLS = frozenset(
    {"open", "os.open", "os.fdopen", "io.open", "os.mkfifo", "os.mkdir", "os.makedirs", "os.rename", "os.unlink"}
)

Sources = dict[str, ast.Module]


def read_sources(directory: Path) -> Sources:
    """Every module of the package, by its name below it (`queue.outcome.retry`; a package's own is its name)."""
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


@cache
def imports_of(module: ast.Module) -> tuple[tuple[int, str], ...]:
    """Line and full name of everything imported, at any depth: `a.b` for `import a.b`, `a.b.c` for `from a.b import c`."""
    return tuple(_imports_of(module))


def _imports_of(module: ast.Module) -> Iterator[tuple[int, str]]:
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
            if LEVELS[other] >= LEVELS[own]:
                yield f"{name}:{line} (level {LEVELS[own]}) imports {imported} (level {LEVELS[other]})"


def _room_of(name: str, package: str) -> int:
    """Where a module stands among the rooms of the package that it is in."""
    first = name.removeprefix(package).removeprefix(".").partition(".")[0]
    rooms = ROOMS[package]
    return rooms.index(first if first in rooms else OWN)


def check_rooms(sources: Sources) -> Iterator[str]:
    """Inside a package with rooms a module imports only its own room and those before it."""
    for name, module in sources.items():
        for package in ROOMS:
            if not name.startswith(package + "."):
                continue
            for line, imported in imports_of(module):
                other = imported.removeprefix(ROOT + ".")
                if other.startswith(package + ".") and _room_of(other, package) > _room_of(name, package):
                    yield f"{name}:{line} imports {imported}, which is above it in the rooms of {package}"


def check_map(sources: Sources) -> Iterator[str]:
    """A package's docstring has a line for each module and package in it; rooms stand in the order of `ROOMS`."""
    for package, module in sources.items():
        inside = {
            name.removeprefix(package).removeprefix(".") for name in sources if package in ("", name.rpartition(".")[0])
        }
        inside = {name for name in inside if name and "." not in name}
        text = ast.get_docstring(module, clean=False) or ""
        for name in sorted(inside - {"__main__"}):
            if f"\n    {name} " not in text:
                yield f"the map of {package or ROOT} has no line for {name}"
        places = [text.find(f"\n    {room} ") for room in ROOMS.get(package, ()) if room != OWN]
        if places != sorted(places):
            yield f"the map of {package} has its rooms in another order than {', '.join(ROOMS[package])}"


def check_cycles(sources: Sources) -> Iterator[str]:
    """No module is imported by what it imports, for types neither."""
    graph = {name: _imported_modules(name, sources) for name in sources}
    done: set[str] = set()
    for name in sources:
        yield from _find_cycle(name, graph, [], done)


def _imported_modules(name: str, sources: Sources) -> list[str]:
    found = set()
    for _, imported in imports_of(sources[name]):
        if not imported.startswith(ROOT + "."):
            continue  # dnspython has modules of the names of ours
        other = imported.removeprefix(ROOT + ".")
        found |= {part for part in (other, other.rpartition(".")[0]) if part in sources and part}
    return sorted(found)


def _find_cycle(name: str, graph: dict[str, list[str]], above: list[str], done: set[str]) -> Iterator[str]:
    if name in above:
        yield " -> ".join([*above[above.index(name) :], name])
    elif name not in done:
        for other in graph[name]:
            yield from _find_cycle(other, graph, [*above, name], done)
        done.add(name)


SAME_NAMES: dict[str, str] = {}
"""Public classes of one name in several modules, and why."""


def check_names(sources: Sources) -> Iterator[str]:
    """One name, one concept: no public class has the name of another without a reason; predicates return bool."""
    homes: dict[str, list[str]] = {}
    for name, module in sources.items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in SAME_NAMES:
                homes.setdefault(node.name, []).append(name)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
                is_predicate = node.name.lstrip("_").startswith(("is_", "has_", "may_", "wants_"))
                if is_predicate and ast.unparse(node.returns) == "None":
                    yield f"{name}:{node.lineno} {node.name} sounds like a predicate and returns nothing"
    for class_name, found in homes.items():
        if len(found) > 1:
            yield f"{class_name} is the name of several classes: in {', '.join(found)}"


HANDED_OUT = {
    "admin.server.task.AdminTask": "its factory of sessions, which no connection reaches before `bind`",
    "deliver.sessions.host_session.HostSession": "its engine, which calls from `connectionMade` on: a session has one",
    "deliver.sessions.all_sessions.Sessions": "its schedule, look-ups and watch over secrets, which call back from `add` on",
    "dns.sockets.UdpSocket": "the reactor's list of readers: it calls in a later turn",
    "net.send._Drain": "the transport's producer: Twisted calls it in a later turn",
    "net.tls.TlsServer": "Twisted's factory of TLS layers, which calls for a connection",
    "net.tls_client.TlsClient": "as `net.tls.TlsServer`",
    "net.tls.TlsTransport": "the two layers of one connection, made together; bytes come later",
    "start.observation.Observation": "called at once, of parts that are made before",
    "start.signals.Signals": "the system's signal handler, which notes a number in parts that are made before",
}
"""Classes whose constructor hands out the object that it makes, a method of it, or a function that uses it: to whom, and
why it is harmless."""


def check_constructors(sources: Sources) -> Iterator[str]:
    """An object is complete when its constructor returns: the constructor hands it to nobody, bound methods and lambdas
    included."""
    for name, module in sources.items():
        for owner in ast.walk(module):
            if not isinstance(owner, ast.ClassDef) or f"{name}.{owner.name}" in HANDED_OUT:
                continue
            methods = {
                node.name
                for node in owner.body
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list
            }
            for node in owner.body:
                if isinstance(node, ast.FunctionDef) and node.name in ("__init__", "__attrs_post_init__"):
                    for line in _lines_that_hand_out(node, methods):
                        yield f"{name}:{line} the constructor of {owner.name} hands out the object that it makes"


def _lines_that_hand_out(constructor: ast.FunctionDef, methods: set[str]) -> Iterator[int]:
    for node in ast.walk(constructor):
        if isinstance(node, ast.Lambda | ast.FunctionDef) and node is not constructor:
            if any(isinstance(inner, ast.Name) and inner.id == "self" for inner in ast.walk(node)):
                yield node.lineno
        elif isinstance(node, ast.Call):
            is_base = isinstance(node.func, ast.Attribute) and node.func.attr == "__init__"
            arguments = [*node.args[is_base:], *(keyword.value for keyword in node.keywords)]
            for argument in arguments:
                is_self = isinstance(argument, ast.Name) and argument.id == "self"
                is_method = (
                    isinstance(argument, ast.Attribute)
                    and isinstance(argument.value, ast.Name)
                    and argument.value.id == "self"
                    and argument.attr in methods
                )
                if is_self or is_method:
                    yield node.lineno


_HOT = "hot path: a call for each would cost more than the assignment"
_INDEX = "one structure in several classes; " + _HOT
_PARTS = "records of one parser, filled step by step within its module"

FOREIGN_WRITES: dict[str, tuple[str, str]] = {
    "admin.commands.command": ("formatter_class description epilog", "argparse: a parser has no other way"),
    "admin.server.session": ("is_being_made progressed_at", "the state of one request, kept with it for admission"),
    "app": ("seconds", "the reactor's clock, before it runs"),
    "config.read.document": ("sourceline", "lxml: the line of an element is set so"),
    "deliver.schedule.sorted_connections": ("jobs begun place is_idle", "connections are the host's own records; " + _HOT),
    "deliver.schedule.handing_out": ("queued begun", "connections, in the schedule's only other place; " + _HOT),
    "deliver.giving_back": ("entries", "destinations, of which it counts the entries; " + _HOT),
    "deliver.sessions.all_sessions": ("entries", "destinations, of which it counts the entries; " + _HOT),
    "deliver.sessions.verdicts": ("entries moved_at waited_s", "destinations, of which it counts the entries; " + _HOT),
    "dns.question": ("sockets", "the number of sockets that all questions share"),
    "dns.servers": ("until is_tried", "the record of one server, within its module"),
    "journal.commit": ("is_check_due", "a flag for the journal's thread; a call could run there as well"),
    "journal.load": ("horizon sure_horizon last last_segment is_doubtful epoch", _PARTS),
    "journal.opening": ("last_sequence", "of the segment that the start denies"),
    "journal.build": ("end", "segments are the builder's own"),
    "journal.pool": ("header", "a segment that is free again"),
    "journal.replay": ("limit header counts is_guessed last_sequence end is_torn damages", _PARTS),
    "journal.writer": ("last_sequence end is_given_up", "segments are the writer's own; " + _HOT),
    "net.dispatch": ("doIteration wakeUp", "the reactor's round and its wake-up, before it runs"),
    "net.tls": ("protocol", "Twisted: a transport's protocol is exchanged so"),
    "queue.due.entries": ("since", "records of the index; " + _HOT),
    "queue.due.index": ("due_at entry_count waiting", "records of the index; " + _HOT),
    "queue.providers.clustered.fsck.repair": ("loaded", "the replayed journal, for the executor of repairs"),
    "queue.providers.clustered.fsck.findings.clusters": (
        "checkpoint lengths epoch count is_to_move right_area has_lost",
        "what is known so far, filled by one finding after the other",
    ),
    "queue.fsck.local.segments": ("is_doubtful", "of the journal that it has just replayed"),
    "queue.providers.clustered.index.cluster": ("due_at", _INDEX),
    "queue.providers.clustered.index.cluster_index": ("next_scan unread_at waiting live", _INDEX),
    "queue.providers.clustered.index.waiting_lines": ("count", _INDEX),
    "queue.providers.clustered.recovery.offline": ("is_doubtful", "of the journal that it has just replayed"),
    "queue.providers.clustered.recovery.replay": ("checkpoint lengths", _PARTS),
    "queue.providers.log.commit.asked": ("left unsure", _INDEX),
    "queue.providers.log.commit_requests": ("may_fail", "of the item that it fills"),
    "queue.providers.log.control.ledger": (
        "sequence place_offset segment offset content_segment content_offset left unsure entry_count content checksum "
        "due_at record_bytes content_bytes",
        _INDEX,
    ),
    "queue.providers.log.control.rounds": ("was_out is_start_asked", _INDEX),
    "queue.providers.log.index.resting": (
        "late late_amounts late_ids late_refers ids refers flushes is_known dues",
        "pieces, which are its own",
    ),
    "queue.providers.log.recovery.replay": ("is_garbage", _PARTS),
    "queue.rounds": ("entries", "the rest of a round's message, within its module"),
    "smtp.client.engine": ("answered is_first", "a transaction is the engine's own while it is under way"),
    "spool.references": ("left_out", "the walk under way, within its module"),
    "submit.ending": ("held written_at", "the record of one kind of line, within its module"),
    "submit.reception": ("messages recipients content_bytes refusals", "counters; " + _HOT),
    "submit.sessions": ("policy ticks_per_line", "a reload, for all sessions at once"),
    "submit.task": ("is_closing", "a stop, for all sessions at once"),
}
"""Modules that set attributes of other objects: which ones, and why."""


def check_foreign_writes(sources: Sources) -> Iterator[str]:
    """Nobody writes another object's attributes, but by its named methods. An object that a function has just made is its
    own, and a private class is a record of its module."""
    for name, module in sources.items():
        allowed = {*FOREIGN_WRITES.get(name, ("", ""))[0].split(), *_attributes_of_private_classes(module)}
        for function in ast.walk(module):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for line, attribute in foreign_writes(function):
                    if attribute not in allowed:
                        yield f"{name}:{line} sets {attribute} of another object"


def foreign_writes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[int, str]]:
    """Line and name of each attribute that is set of anything but `self`, `cls` and what the function makes."""
    own = {"self", "cls", *_made_in(function)}
    for node in ast.walk(function):
        for target in _targets(node):
            if isinstance(target, ast.Attribute) and not (isinstance(target.value, ast.Name) and target.value.id in own):
                yield target.lineno, target.attr


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    """What is assigned to, within tuples and lists too."""
    waiting: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        waiting = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
        waiting = [node.target]
    while waiting:
        target = waiting.pop()
        if isinstance(target, ast.Tuple | ast.List):
            waiting += target.elts
        else:
            yield target


def _made_in(function: ast.AST) -> set[str]:
    """Names that are bound to nothing but new objects: results of calls of classes."""
    made: set[str] = set()
    other: set[str] = set()
    for node in ast.walk(function):
        value = getattr(node, "value", None)
        is_new = isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(value, ast.Call) and _is_class(value.func)
        for target in _targets(node):
            if isinstance(target, ast.Name):
                (made if is_new else other).add(target.id)
    return made - other


def _is_class(called: ast.expr) -> bool:
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name.lstrip("_")[:1].isupper()


def _attributes_of_private_classes(module: ast.Module) -> set[str]:
    found: set[str] = set()
    for owner in ast.walk(module):
        if isinstance(owner, ast.ClassDef) and owner.name.startswith("_"):
            for node in ast.walk(owner):
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    found.add(node.target.id)
                for target in _targets(node):
                    if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                        found.add(target.attr)
    return found


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


def check_providers(sources: Sources) -> Iterator[str]:
    """Nothing outside of a provider imports a module of it; its name as text stands in the table alone."""
    inside = PROVIDERS.removeprefix(ROOT + ".") + "."
    for name, module in sources.items():
        own = ".".join(name.split(".")[:3]) if name.startswith(inside) else ""
        for line, imported in imports_of(module):
            found = imported.removeprefix(ROOT + ".")
            if found.startswith(inside) and (not own or not (found + ".").startswith(own + ".")):
                yield f"{name}:{line} imports {imported}: only the table knows the providers"
        for node in ast.walk(module):
            is_name = isinstance(node, ast.Constant) and str(node.value).startswith(PROVIDERS + ".")
            if is_name and name != PROVIDER_TABLE:
                yield f"{name}:{getattr(node, 'lineno', 0)} names a provider's module: only the table does"


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
