"""Observation: audit logs, metrics and ends of certificates of one server, from the start to the end, as the configuration
asks for them.

*Rules*: whatever can refuse a start is tried in `bind`. Nothing here is needed for mail: what fails later is logged. Without
`<metrics>` neither the library nor any timer of it is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailismus.config.values.names import format_host_port
from mailismus.config.values.settings import AuditFormat, AuditSettings, Settings
from mailismus.deliver import metrics as deliver_metrics
from mailismus.deliver.task import DeliverTask
from mailismus.disk.worker import ThreadPool
from mailismus.dns.counters import DnsCounters
from mailismus.errors import StartError
from mailismus.net import listen
from mailismus.observe import audit_log, metrics_process
from mailismus.observe.audit_log import JSON, LINES, AuditLog, Audits
from mailismus.observe.maillog import MailLog
from mailismus.observe.metrics import Reader, meter
from mailismus.observe.metrics_endpoint import MetricsEndpoint
from mailismus.observe.metrics_process import Process
from mailismus.queue import metrics as queue_metrics
from mailismus.queue.manager import QueueManager
from mailismus.queue.provider import IOpenedQueue
from mailismus.report import metrics as report_metrics
from mailismus.report.task import ReportTask
from mailismus.start import certificate_ends
from mailismus.start.certificate_ends import CertificateEnds
from mailismus.start.exits import exit_code_of
from mailismus.start.logfile import LogDestination
from mailismus.start.server import Reactor
from mailismus.start.version import program_version
from mailismus.submit import metrics as submit_metrics
from mailismus.submit.task import SubmitTask

LAYOUTS = {AuditFormat.TEXT: LINES, AuditFormat.JSON: JSON}


class Observation:
    """Of one server. `opening_s`: what opening its queue took."""

    _log = Logger()

    def __init__(
        self, settings: Settings, reactor: Reactor, clock: IReactorTime, maillog: MailLog, opening_s: float
    ) -> None:
        self._wanted = settings.admin.metrics
        self._reactor, self._clock = reactor, clock
        self._threads: list[ThreadPool] = []
        """One for each audit log: one that hangs does not keep the other from being written."""
        self._audit_settings = (settings.deliver.audit, settings.report.audit)
        self.audits = Audits(*map(self._make_audit, self._audit_settings))
        self._process = Process(program_version(), opening_s, lambda: _lost_lines(maillog), clock, time.monotonic)
        self._certificates = CertificateEnds(settings.certificates, clock)
        self._readers: list[Reader] = []
        self._bound: list[listen.ListeningSocket] = []
        self._endpoint: MetricsEndpoint | None = None
        self._make_endpoint: Callable[[list[Reader]], MetricsEndpoint]

    def _make_audit(self, settings: AuditSettings | None) -> AuditLog | None:
        if settings is None:
            return None
        thread = ThreadPool(self._reactor, f"audit-{len(self._threads)}")
        self._threads.append(thread)
        return AuditLog(settings.path, LAYOUTS[settings.format], thread, self._clock, self._clock.seconds)

    def bind(self) -> None:
        """Try the audit logs, make the sockets for metrics. Raises `StartError`, having closed what it made."""
        for name, log in (("deliver", self.audits.delivered), ("report", self.audits.bounced)):
            try:
                if log is not None:
                    log.probe()
            except OSError as error:
                text = f"the audit log {error.filename} can't be written: {error.strerror}"
                raise StartError(exit_code_of(error), text, f"mta/{name}/audit") from error
        if self._wanted is not None:
            # Here, where a start can be refused and privileges are not dropped; only here, for it takes a fifth of a second.
            from mailismus.observe.metrics_page import CONTENT_TYPE, MetricsPage

            def make_endpoint(readers: list[Reader]) -> MetricsEndpoint:
                return MetricsEndpoint(MetricsPage(readers, time.monotonic), CONTENT_TYPE, self._clock, self._reactor)

            self._make_endpoint = make_endpoint
            self._bound = listen.bind("metrics", self._wanted.interface, self._wanted.port)

    def close(self) -> None:
        """Give the sockets up again."""
        listen.close_all(self._bound)
        self._bound = []

    def watch(
        self,
        opened: IOpenedQueue,
        manager: QueueManager,
        submit: SubmitTask,
        deliver: DeliverTask,
        names: DnsCounters,
        report: ReportTask,
    ) -> None:
        """What these count is what metrics show."""
        self._readers = [
            *meter(metrics_process.METRICS, self._process),
            *opened.metrics(),
            *meter(queue_metrics.FIGURES, opened.figures),
            *meter(queue_metrics.METRICS, manager),
            *meter(submit_metrics.METRICS, submit),
            *meter(deliver_metrics.METRICS, deliver),
            *meter(deliver_metrics.NAMES, names),
            *meter(report_metrics.METRICS, report),
            *meter(audit_log.METRICS, self.audits),
            *meter(certificate_ends.METRICS, self._certificates),
        ]

    @property
    def readers(self) -> Sequence[Reader]:
        """The metrics of what is watched."""
        return self._readers

    def start(self) -> None:
        """Write audits, answer who asks for metrics."""
        for thread in self._threads:
            thread.start()
        self._certificates.start()
        if not self._bound:
            return
        self._process.start()
        self._endpoint = self._make_endpoint(self._readers)
        self._endpoint.start([one.bound for one in self._bound])
        for one in self._bound:
            self._log.info("Metrics are at http://{endpoint}/metrics", endpoint=format_host_port((one.host, one.port)))
        self._bound = []

    def reopen(self) -> None:
        """Go on in the files that have the names of the audit logs now."""
        for log in self.audits.logs.values():
            log.reopen()

    def reload(self, settings: Settings) -> None:
        """Watch other certificates. Audit logs and metrics do not change while the server runs."""
        self._certificates.adopt(settings.certificates)

    def stop(self) -> Deferred[None]:
        """Write out the last lines, show nothing more. Fires when that is done."""
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        self.close()
        self._process.stop()
        self._certificates.stop()
        if self._endpoint is not None:
            await self._endpoint.stop()
        for log in self.audits.logs.values():
            await log.close()
        for thread in self._threads:
            thread.leave()  # what is not written by now hangs


def _lost_lines(maillog: MailLog) -> int | None:
    """None: it is not our log."""
    return maillog.lost_lines if isinstance(maillog, LogDestination) else None
