"""Advice about places: directories, files, ports and addresses of this host (pure: the host is an argument, a `HostProbe`).

*Rules*: as in `advice.sentence`. A directory that the start would refuse is an error here: a symbolic link, a wrong owner
or mode, a parent that others can write, a place where this user may make nothing. Root may do everything and is not told
of owners: the server may be meant to run as another user.
"""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Iterator

from mailismus.config.advice.host_probe import HostProbe, PathKind, Spot
from mailismus.config.advice.sentence import Advice, line_of, refuse, warn
from mailismus.config.read.check import Given
from mailismus.config.table import application as app
from mailismus.config.table import deliver as dlv
from mailismus.config.table import queue as que
from mailismus.config.table import report as rep
from mailismus.config.table import sendmail as sml
from mailismus.config.table import submit as sub
from mailismus.config.table.root import MTA
from mailismus.config.values.settings import MinFree, Settings
from mailismus.config.values.units import show_size

Place = tuple[str, str, int]
"""Its title in messages, its path, and the line that names it."""


def advise_places(top: Given, settings: Settings, host: HostProbe) -> Iterator[Advice]:
    """Everything that depends on this host."""
    queue = top.one(MTA).one(que.QUEUE)
    spool = queue.one(que.SPOOL)
    store = top.one(app.MESSAGE_STORE)
    admin = top.one(app.ADMIN)
    private = [
        ("<rootpath> of <queue>", settings.queue.rootpath, line_of(que.ROOTPATH, top, queue)),
        ("<rootpath> of <spool>", settings.queue.spool.rootpath, line_of(que.SPOOL_ROOTPATH, top, queue, spool)),
    ]
    userpath = ("<userpath>", settings.message_store.userpath, line_of(app.USERPATH, top, store))
    lmtp = settings.message_store.lmtp
    stores = [userpath] if lmtp is None else []
    run_path = posixpath.dirname(settings.admin.socket_path)
    socket = ("the directory of <socket>", run_path, line_of(app.SOCKET, top, admin))
    told: set[str] = set()
    yield from _advise_root(top, settings, host)
    for place in private:
        yield from _advise_private(place, host, told)
    for place in stores:
        yield from _advise_directory(place, host, told)
    if lmtp is not None and not lmtp.port:
        yield from _advise_lmtp(lmtp.host, line_of(app.LMTP_ADDRESS, top, store, *store.all(app.LMTP)), host)
    yield from _advise_run_directory(socket, host, told)
    yield from _advise_sendmail(top, settings, host, told)
    yield from _advise_audits(top, settings, host, told)
    yield from _advise_nesting([*private, *stores])
    yield from _advise_room(settings.queue.minfree, private, line_of(que.MINFREE, top, queue), host)
    yield from _advise_files(top, settings, host)
    yield from _advise_ports(top, settings, host)


def _advise_root(top: Given, settings: Settings, host: HostProbe) -> Iterator[Advice]:
    """A root that is not there is mostly misspelt, or a file system that is not mounted."""
    path = settings.application.root_path
    application = top.one(app.APPLICATION)
    if host.look(path).kind is PathKind.MISSING:
        yield warn(
            line_of(app.ROOT, top, application, application.one(app.DIRPATHS)),
            f"<root> is {path}, which does not exist; an empty queue would be made there: write where it is, or mount it",
        )


def _advise_private(place: Place, host: HostProbe, told: set[str]) -> Iterator[Advice]:
    """A directory that is the server's alone."""
    title, path, line = place
    spot = host.look(path)
    if spot.kind is PathKind.MISSING or spot.kind is PathKind.OTHER:
        yield from _advise_making(place, host, told)
        return
    if spot.kind is PathKind.LINK:
        yield refuse(line, f"{title} is {path}, a symbolic link, which is refused: write the directory itself")
        return
    if spot.kind is not PathKind.DIRECTORY:
        yield refuse(line, f"{title} is {path}, which is no directory: write another path")
        return
    if host.uid not in (0, spot.uid):
        owner, user = host.user_name(spot.uid), host.user_name(host.uid)
        yield refuse(
            line,
            f"{title} is {path}, which belongs to user {owner}, not to {user} who asks: run this as {owner}, or run: "
            f"chown -R {user} {path}",
        )
    if spot.mode & 0o077:
        yield refuse(line, f"{title} is {path}, which is open to others (mode {spot.mode:04o}): run: chmod 700 {path}")
    for parent in _parents(path):
        if _others_may_write(found := host.look(parent)):
            yield refuse(
                line,
                f"{title} is {path}, but others can write {parent} (mode {found.mode:04o}): run: chmod go-w {parent}",
            )


def _advise_directory(place: Place, host: HostProbe, told: set[str]) -> Iterator[Advice]:
    """A directory that others may look into."""
    title, path, line = place
    spot = host.look(path)
    if spot.kind is PathKind.FILE:
        yield refuse(line, f"{title} is {path}, which is no directory: write another path")
    elif spot.kind is PathKind.DIRECTORY and not spot.may_make:
        user = host.user_name(host.uid)
        yield refuse(
            line, f"{title} is {path}, where user {user} may not write: run: chown {user} {path}, or write another path"
        )
    elif spot.kind is PathKind.MISSING:
        yield from _advise_making(place, host, told)


def _advise_lmtp(path: str, line: int, host: HostProbe) -> Iterator[Advice]:
    """The socket of the LMTP server. That server may be started later than this one, so none of this is an error."""
    kind = host.look(path).kind
    if kind is PathKind.MISSING:
        yield warn(line, f"<lmtp> names {path}, which does not exist: start the LMTP server, or write its socket")
    elif kind is PathKind.DIRECTORY or kind is PathKind.FILE:
        yield warn(line, f"<lmtp> names {path}, which is no socket: write the socket of the LMTP server")


def _advise_run_directory(place: Place, host: HostProbe, told: set[str]) -> Iterator[Advice]:
    title, path, line = place
    spot = host.look(path)
    if spot.kind is PathKind.LINK:
        yield refuse(line, f"{title} is {path}, a symbolic link, which is refused: write the directory itself")
    elif _others_may_write(spot):
        yield refuse(line, f"{title} is {path}, which others can write (mode {spot.mode:04o}): run: chmod go-w {path}")
    else:
        yield from _advise_directory(place, host, told)


def _advise_sendmail(top: Given, settings: Settings, host: HostProbe, told: set[str]) -> Iterator[Advice]:
    """The directory of sendmail is the server's, and every user passes through those above it."""
    if settings.sendmail is None:
        return
    path = settings.sendmail.rootpath
    submit = top.one(MTA).one(sub.SUBMIT)
    line = line_of(sml.ROOTPATH, top, submit, *submit.all(sml.SENDMAIL))
    yield from _advise_run_directory(("<rootpath> of <sendmail>", path, line), host, told)
    for above in _parents(path):
        spot = host.look(above)
        if spot.kind is PathKind.DIRECTORY and not spot.mode & stat.S_IXOTH:
            yield warn(
                line,
                f"<rootpath> of <sendmail> is {path}, but other users can't pass through {above} (mode {spot.mode:04o}), so "
                f"that their programs can't send: run: chmod o+x {above}, or write another path",
            )


def _advise_audits(top: Given, settings: Settings, host: HostProbe, told: set[str]) -> Iterator[Advice]:
    """An audit log is a file in a directory where it can be made. Of a name with a date only its first part is known."""
    mta = top.one(MTA)
    deliver, report = mta.one(dlv.DELIVER), mta.one(rep.REPORT)
    for audit, block, setting in (
        (settings.deliver.audit, deliver, dlv.AUDIT),
        (settings.report.audit, report, rep.AUDIT),
    ):
        if audit is None:
            continue
        line, path = line_of(setting, top, mta, block), audit.path
        title = f"<audit> of <{block.block.name}>"
        kind = host.look(path).kind
        if kind is PathKind.LINK:
            yield refuse(line, f"{title} is {path}, a symbolic link, which is refused: write the file itself")
        elif kind is PathKind.DIRECTORY:
            yield refuse(line, f"{title} is {path}, a directory: write a file in it, such as {path}/%DT%.log")
        else:
            directory = posixpath.dirname(path.partition("%")[0])
            yield from _advise_directory((f"the directory of {title}", directory, line), host, told)


def _advise_making(place: Place, host: HostProbe, told: set[str]) -> Iterator[Advice]:
    """A missing directory is made at the start, where that is possible. `told`: parents that were complained of already."""
    title, path, line = place
    parent = posixpath.dirname(path)
    while host.look(parent).kind is PathKind.MISSING and parent != "/":
        parent = posixpath.dirname(parent)
    spot = host.look(parent)
    if parent in told:
        return
    if spot.kind is PathKind.FILE:
        told.add(parent)
        yield refuse(line, f"{title} is {path}, but {parent} is no directory: write another path")
    elif not spot.may_make:
        told.add(parent)
        user = host.user_name(host.uid)
        yield refuse(
            line,
            f"{title} is {path}, which does not exist, and user {user} may not make it in {parent}: run as root: "
            f"install -d -m 700 -o {user} {_below(parent, path)}",
        )


def _advise_nesting(places: list[Place]) -> Iterator[Advice]:
    """A directory within another one is moved, copied and deleted with it."""
    for number, (title, path, line) in enumerate(places):
        for other_title, other, _ in (*places[:number], *places[number + 1 :]):
            if path == other and number:
                yield refuse(line, f"{title} is {path}, and so is {other_title}: write two paths")
                break
            if path.startswith(other + "/"):
                yield warn(line, f"{title}, {path}, lies within {other_title}, {other}: write a directory of its own")
                break


def _advise_room(minfree: MinFree, places: list[Place], line: int, host: HostProbe) -> Iterator[Advice]:
    for title, path, _ in places:
        room = host.room(path)
        if room is None:
            continue
        least = min(room.share, room.inode_share)
        if minfree.share and least < minfree.share:
            what = "of the bytes" if room.share <= room.inode_share else "of the inodes"
            found, wanted = f"{least * 100:.1f} % {what}", f"{minfree.share * 100:g} %"
        elif room.free_bytes < minfree.size_bytes:
            found, wanted = f"{room.free_bytes / 1e9:.1f}G", show_size(minfree.size_bytes)
        else:
            continue
        yield warn(
            line,
            f"<minfree> asks for {wanted}, but {title}, {path}, has {found} free: all mail would be refused (452) now; make "
            "room, or write less",
        )
        return


def _advise_files(top: Given, settings: Settings, host: HostProbe) -> Iterator[Advice]:
    """A user who can write these files decides whose mail is taken, and where it goes."""
    block = top.one(app.DIRECTORY)
    if host.look(settings.file).mode & stat.S_IWOTH:
        yield warn(top.line, f"everybody can write this file: run: chmod o-w {settings.file}")
    for setting in (app.DOMAINS, app.USERS):
        for path in block.get(setting):
            if "/" not in path:
                continue
            spot = host.look(path)
            line = line_of(setting, top, block)
            if spot.kind is not PathKind.LINK and spot.mode & stat.S_IWOTH:
                yield warn(line, f"<{setting.name}> names {path}, which everybody can write: run: chmod o-w {path}")
            if spot.kind is not PathKind.LINK and spot.mode & stat.S_IROTH and host.holds_more_than_names(path):
                yield warn(
                    line,
                    f"<{setting.name}> names {path}, which everybody can read, and there is text behind names, as in files"
                    f" with passwords: run: chmod o-r {path}",
                )


def _advise_ports(top: Given, settings: Settings, host: HostProbe) -> Iterator[Advice]:
    submit = top.one(MTA).one(sub.SUBMIT)
    listeners = submit.one(sub.LISTENERS)
    for listener, given in zip(settings.listeners, listeners.all(sub.LISTENER), strict=True):
        chain = (top, submit, listeners, given)
        if 0 < listener.port < host.lowest_port:
            yield warn(
                line_of(sub.PORT, *chain),
                f"port {listener.port} of listener {listener.name} needs root or CAP_NET_BIND_SERVICE, which user "
                f"{host.user_name(host.uid)} does not have here: start it by systemd with "
                f"AmbientCapabilities=CAP_NET_BIND_SERVICE, or write a port from {host.lowest_port}",
            )
        if listener.interface and not host.is_own_address(listener.interface):
            yield _refuse_interface(line_of(sub.INTERFACE, *chain), listener.interface, f"listener {listener.name}")
    admin = top.one(app.ADMIN)
    for metrics in admin.all(app.METRICS):
        interface = metrics.get(app.METRICS_INTERFACE)
        if interface and not host.is_own_address(interface):
            yield _refuse_interface(line_of(app.METRICS_INTERFACE, top, admin, metrics), interface, "<metrics>")
    for web in admin.all(app.WEB):
        interface = web.get(app.WEB_INTERFACE)
        if interface and not host.is_own_address(interface):
            yield _refuse_interface(line_of(app.WEB_INTERFACE, top, admin, web), interface, "<web>")


def _refuse_interface(line: int, interface: str, whose: str) -> Advice:
    text = f"interface {interface} of {whose} is no address of this host: write one that `ip address` shows"
    return refuse(line, f"{text}, or leave it out")


def _parents(path: str) -> Iterator[str]:
    while path != "/":
        path = posixpath.dirname(path)
        yield path


def _others_may_write(spot: Spot) -> bool:
    """A directory in which others could put something in our place: not sticky, and open to all or a group not root's."""
    if spot.kind is not PathKind.DIRECTORY or spot.mode & stat.S_ISVTX:
        return False
    return bool(spot.mode & stat.S_IWOTH or (spot.mode & stat.S_IWGRP and spot.gid != 0))


def _below(parent: str, path: str) -> str:
    """The first step from a directory to what lies below it."""
    return posixpath.join(parent, posixpath.relpath(path, parent).split("/")[0])
