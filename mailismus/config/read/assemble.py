"""Assembling: checked values to `Settings`, with the checks that concern several values at once.

*Rules*: every error names its element and line. Files are read here only for names, certificates and secrets
(`config.read.lists`, `certificates` and `auth`); whether paths can be used, the components find out that use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import NoReturn

import attrs

from mailismus.config.read.auth import AuthReader
from mailismus.config.read.check import Given
from mailismus.config.read.destinations import assemble_destinations
from mailismus.config.read.effective import Key, Lowered
from mailismus.config.read.files import Files
from mailismus.config.read.listeners import ListenerReader
from mailismus.config.read.lists import Names, read_names
from mailismus.config.read.relays import assemble_relays
from mailismus.config.read.sendmail import assemble_sendmail
from mailismus.config.read.services import ServicesReader
from mailismus.config.read.tls import TlsReader
from mailismus.config.read.web import assemble_web
from mailismus.config.table import application as app
from mailismus.config.table import deliver as dlv
from mailismus.config.table import queue as que
from mailismus.config.table import report as rep
from mailismus.config.table import submit as sub
from mailismus.config.table.root import MTA
from mailismus.config.table.tls import CLIENT_TLS
from mailismus.config.table.words import Setting, belongs_to
from mailismus.config.values.certificates import NamedCertificate
from mailismus.config.values.names import check_socket_path, parse_domain, parse_user
from mailismus.config.values.open_files import PER_CONNECTION, PER_PART, Demand, TooMany, fit, reserve_of
from mailismus.config.values.settings import (
    AdminSettings,
    ApplicationSettings,
    AuditFormat,
    AuditSettings,
    ClientSettings,
    DeliverSettings,
    DnsSettings,
    EightBit,
    JournalSettings,
    LmtpSettings,
    MessageStoreSettings,
    MetricsSettings,
    MinFree,
    QueueSettings,
    QuotaFull,
    RelaySettings,
    ReportSettings,
    RetrySettings,
    ScheduleSettings,
    Settings,
    SpoolSettings,
)
from mailismus.config.values.units import UnitError
from mailismus.errors import ConfigError
from mailismus.mail.directory import Directory

_RAISE = "ulimit -Hn, or LimitNOFILE= of systemd"


@attrs.define
class Assembly:
    """One configuration on its way to `Settings`. `changed`: values that gave way, by block and key; `contents`: digests
    of what the files hold that a setting names."""

    top: Given
    listeners: list[Given]
    file: str
    hard_limit: int | None
    files: Files
    notes: list[str] = attrs.Factory(list)
    certificates: list[NamedCertificate] = attrs.Factory(list)
    changed: dict[Key, Lowered] = attrs.Factory(dict)
    contents: dict[Key, bytes] = attrs.Factory(dict)

    def settings(self) -> Settings:
        """The settings. Raises `ConfigError`."""
        deliver = self.top.one(MTA).one(dlv.DELIVER)
        application = self._application()
        block = self.top.one(app.DIRECTORY)
        domains = self._names(block, app.DOMAINS, parse_domain)
        directory = self._directory(block, domains.all)
        tls = TlsReader(
            self.file, self.files, self.notes, self.contents, self.certificates, deliver.one(dlv.CLIENT).one(CLIENT_TLS)
        )
        secrets = AuthReader(self.file, self.files, self.contents)
        relays = assemble_relays(deliver.one(dlv.RELAYS), self.file, tls.read, secrets.read)
        listeners = ListenerReader(self.listeners, self.file, self.files, self.notes, self.contents, self.certificates)
        limits = self._fit_connections(deliver)
        return Settings(
            file=self.file,
            application=application,
            directory=directory,
            message_store=self._message_store(),
            queue=self._queue(secrets),
            listeners=listeners.read(limits[:-1]),
            deliver=self._deliver(deliver, relays, tls, limits[-1]),
            report=self._report(domains.first or application.announcehost),
            admin=self._admin(secrets),
            sendmail=assemble_sendmail(self.top, domains.first or application.announcehost),
            certificates=tuple(self.certificates),
        )

    def _refuse(self, line: int, text: str) -> NoReturn:
        raise ConfigError(self.file, line, text)

    def _application(self) -> ApplicationSettings:
        block = self.top.one(app.APPLICATION)
        paths = block.one(app.DIRPATHS)
        return ApplicationSettings(
            announcehost=block.get(app.ANNOUNCEHOST).encode("ascii"),
            root_path=paths.get(app.ROOT),
            config_path=paths.get(app.CONFIG),
            var_path=paths.get(app.VAR),
            logs_path=paths.get(app.LOGS),
            stop_timeout_s=block.get(app.STOP_TIMEOUT),
        )

    def _directory(self, block: Given, domains: Set[bytes]) -> Directory:
        users = self._names(block, app.USERS, parse_user).all
        postmaster = block.get(app.POSTMASTER)
        if domains and not postmaster:
            self._refuse(
                block.line_of(app.DOMAINS),
                "<directory> has local domains but no <postmaster>: write the user who gets postmaster's mail",
            )
        if postmaster and postmaster.encode("ascii") not in users:
            self._refuse(
                block.line_of(app.POSTMASTER),
                f'<postmaster> is "{postmaster}", who is not one of <users>: write one of them',
            )
        return Directory(domains, users, postmaster.encode("ascii"))

    def _names(self, block: Given, setting: Setting[tuple[str, ...]], parse_name: Callable[[str], str]) -> Names:
        line = block.line_of(setting)
        try:
            names = read_names(block.get(setting), parse_name, self.files, line)
        except UnitError as error:
            self._refuse(line, f"{setting.title}: {error}")
        self.contents[id(block), setting.key] = names.digest
        return names

    def _message_store(self) -> MessageStoreSettings:
        block = self.top.one(app.MESSAGE_STORE)
        lmtp = next(iter(block.all(app.LMTP)), None)
        of_maildirs: tuple[Setting[str], ...] = (app.USERPATH, app.MAILPATH, app.NAMES, app.QUOTA_FULL)
        for setting in of_maildirs:
            if lmtp is not None and block.is_written(setting):
                self._refuse(
                    block.line_of(setting),
                    f"{setting.title} and <lmtp> (line {lmtp.line}) stand in one <message_store>, but local mail goes "
                    f"either into maildirs or to an LMTP server: remove {setting.title}, or <lmtp>",
                )
        server = None if lmtp is None else LmtpSettings(*lmtp.get(app.LMTP_ADDRESS))
        full = QuotaFull(block.get(app.QUOTA_FULL))
        return MessageStoreSettings(block.get(app.USERPATH), block.get(app.MAILPATH), server, block.get(app.NAMES), full)

    def _queue(self, secrets: AuthReader) -> QueueSettings:
        block = self.top.one(MTA).one(que.QUEUE)
        journal = block.one(que.JOURNAL)
        spool = block.one(que.SPOOL)
        if block.get(que.ROOTPATH) == spool.get(que.SPOOL_ROOTPATH):
            self._refuse(spool.line_of(que.SPOOL_ROOTPATH), "<rootpath> of <spool> is that of <queue>: write two paths")
        share, size_bytes = block.get(que.MINFREE)
        return QueueSettings(
            provider=block.get(que.PROVIDER),
            rootpath=block.get(que.ROOTPATH),
            maxclustersize=block.get(que.MAXCLUSTERSIZE),
            conf_split=block.get(que.CONF_SPLIT),
            maxmemoryqueue=block.get(que.MAXMEMORYQUEUE),
            retry=RetrySettings(
                block.get(que.RETRY_MAXTIME), block.get(que.RETRY_MAXTIME_REPORTS), block.get(que.RETRY_DELAYS)
            ),
            minfree=MinFree(share, size_bytes),
            journal=JournalSettings(
                journal.get(que.SEGMENTSIZE),
                journal.get(que.LARGEMSGSIZE),
                journal.get(que.MAXAGE),
                journal.get(que.MAXSIZE),
            ),
            spool=SpoolSettings(
                spool.get(que.SPOOL_ROOTPATH), spool.get(que.BUFSIZE), spool.get(que.MAXSPIDCACHE), spool.get(que.HARDLINKS)
            ),
            services=ServicesReader(self.file, self.files, secrets, self.contents).read(block),
        )

    def _deliver(
        self, block: Given, relays: tuple[RelaySettings, ...], tls: TlsReader, maxconnections: int
    ) -> DeliverSettings:
        client, dns = block.one(dlv.CLIENT), block.one(dlv.DNS)
        return DeliverSettings(
            relays=relays,
            destinations=assemble_destinations(block.one(dlv.DESTINATIONS), self.file, tls.read),
            queuecache=block.get(dlv.QUEUECACHE),
            maxconnections=maxconnections,
            maxserverconnections=block.get(dlv.MAXSERVERCONNECTIONS),
            maxmessages=block.get(dlv.MAXMESSAGES),
            maxrecips=block.get(dlv.MAXRECIPS),
            messages_per_minute=block.get(dlv.MESSAGES_PER_MINUTE),
            recipients_per_minute=block.get(dlv.RECIPIENTS_PER_MINUTE),
            interval_low_s=block.get(dlv.INTERVAL_LOW),
            interval_high_s=block.get(dlv.INTERVAL_HIGH),
            interval_error_s=block.get(dlv.INTERVAL_ERROR),
            delay_start_s=block.get(dlv.DELAY_START),
            schedule=self._schedule(block.one(dlv.SCHEDULE)),
            client=ClientSettings(
                timeout_s=client.get(dlv.CLIENT_TIMEOUT),
                timeout_connect_s=client.get(dlv.TIMEOUT_CONNECT),
                timeout_final_s=client.get(dlv.TIMEOUT_FINAL),
                maxpipeline=client.get(dlv.MAXPIPELINE),
                fallback_a=client.get(dlv.FALLBACKMX_A),
                eightbit=EightBit(client.get(dlv.EIGHTBIT)),
                mxport=client.get(dlv.MXPORT),
                loopback=client.get(dlv.LOOPBACK),
                tls=tls.client,
            ),
            dns=DnsSettings(dns.get(dlv.DNS_SERVERS), dns.get(dlv.DNS_TIMEOUT), dns.get(dlv.DNS_TRUSTAD)),
            audit=_audit(block.get(dlv.AUDIT), block.get(dlv.AUDIT_FORMAT)),
        )

    def _schedule(self, block: Given) -> ScheduleSettings:
        retry_host_s = block.get(dlv.RETRY_HOST)
        max_retry_host_s = block.get(dlv.FORGET_HOST)
        if not block.is_written(dlv.RETRY_HOST):
            delays_s = self.top.one(MTA).one(que.QUEUE).get(que.RETRY_DELAYS)
            if min(delays_s) < retry_host_s:
                retry_host_s = min(delays_s)
                self.changed[id(block), dlv.RETRY_HOST.key] = Lowered(retry_host_s, "the shortest of <retry_delays>")
            max_retry_host_s = min(max_retry_host_s, max(delays_s))
        return ScheduleSettings(
            max_message_concurrency=block.get(dlv.MAX_MESSAGE_CONCURRENCY),
            scale_max_concurrency=block.get(dlv.SCALE_MAX_CONCURRENCY),
            backlog=block.get(dlv.BACKLOG),
            maxage_idle_s=block.get(dlv.MAXAGE_IDLE),
            maxage_active_s=block.get(dlv.MAXAGE_ACTIVE),
            retry_host_s=retry_host_s,
            max_retry_host_s=max(retry_host_s, max_retry_host_s),
            forget_host_s=block.get(dlv.FORGET_HOST),
        )

    def _report(self, domain: bytes) -> ReportSettings:
        block = self.top.one(MTA).one(rep.REPORT)
        return ReportSettings(
            queuecache=block.get(rep.QUEUECACHE),
            interval_low_s=block.get(rep.INTERVAL_LOW),
            interval_high_s=block.get(rep.INTERVAL_HIGH),
            interval_error_s=block.get(rep.INTERVAL_ERROR),
            delay_start_s=block.get(rep.DELAY_START),
            generate_ndr=block.get(rep.GENERATE_NDR),
            ndr_from=block.get(rep.NDR_FROM).encode("ascii") or b"postmaster@" + domain,
            ndr_subject=block.get(rep.NDR_SUBJECT),
            attachmsg=block.get(rep.ATTACHMSG),
            audit=_audit(block.get(rep.AUDIT), block.get(rep.AUDIT_FORMAT)),
        )

    def _admin(self, secrets: AuthReader) -> AdminSettings:
        block = self.top.one(app.ADMIN)
        metrics = [MetricsSettings(m.get(app.METRICS_INTERFACE), m.get(app.METRICS_PORT)) for m in block.all(app.METRICS)]
        try:
            check_socket_path(block.get(app.SOCKET))
        except UnitError as error:
            self._refuse(block.line_of(app.SOCKET) or self.top.line, f"{app.SOCKET.title} is too long: {error}")
        web = assemble_web(block, self.file, secrets)
        undo_s, undospace_bytes = block.get(app.UNDO), block.get(app.UNDOSPACE)
        return AdminSettings(block.get(app.SOCKET), next(iter(metrics), None), undo_s, undospace_bytes, web)

    def _fit_connections(self, deliver: Given) -> Sequence[int]:
        """The connections of each listener, then those of delivery, as the hard open-file limit allows."""
        places = [(listener.one(sub.SERVER), sub.MAXCONNECTIONS) for listener in self.listeners]
        places.append((deliver, dlv.MAXCONNECTIONS))
        demands = [
            Demand(wanted := block.get(setting), not wanted or str(wanted) == setting.default) for block, setting in places
        ]
        queue = self.top.one(MTA).one(que.QUEUE)
        held = PER_PART * queue.get(que.CONF_SPLIT) if belongs_to(que.CONF_SPLIT, queue.get(que.PROVIDER)) else 0
        limits = fit(demands, self.hard_limit, held)
        if isinstance(limits, TooMany):
            if limits.index is None:
                used = f", {held} of it for the parts of the queue," if held else ""
                self._refuse(
                    1, f"a hard open-file limit of {self.hard_limit}{used} is too low to work with: raise it ({_RAISE})"
                )
            block, setting = places[limits.index]
            cost = f"{PER_CONNECTION} files for a connection, {reserve_of(self.hard_limit or 0) + held} for the rest"
            self._refuse(
                block.line_of(setting),
                f'{setting.title} of <{block.block.name}> is "{block.get(setting)}", but the hard open-file limit is '
                f"{self.hard_limit} ({cost}): write at most {limits.room}, or raise the limit ({_RAISE})",
            )
        for (block, setting), demand, given in zip(places, demands, limits, strict=True):
            if given != demand.wanted:
                self.changed[id(block), setting.key] = Lowered(given, "the open-file limit")
                was = f"lowered from {demand.wanted}" if demand.wanted else "set"
                title = f"{setting.title} of <{block.block.name}>"
                self.notes.append(f"{title} is {was} to {given} to fit the hard open-file limit of {self.hard_limit}")
        return limits


def _audit(path: str, form: str) -> AuditSettings | None:
    return AuditSettings(path, AuditFormat(form)) if path else None
