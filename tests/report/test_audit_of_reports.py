"""What the audit is told when bounces are over."""

from __future__ import annotations

from mailismus.observe.audit import Action, Audited
from mailismus.observe.audit_log import AuditLog, Audits
from mailismus.report.task import ReportTask
from tests.report.harness import Bench, report_settings


class Kept(AuditLog):
    """An audit log that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Audited] = []

    def write(self, audited: Audited) -> None:
        self.told.append(audited)


def bench_with(audit: Kept, **changes: object) -> Bench:
    bench = Bench()
    audits = Audits(None, audit)
    bench.task = ReportTask(
        report_settings(**changes),
        b"mx.example.net",
        bench.queue,
        bench.maillog,
        bench.clock,
        bench.clock.seconds,
        lambda size: bytes(size),
        audits,
    )
    return bench


def test_each_bounce_of_a_report_is_told_with_the_report() -> None:
    audit = Kept()
    bench = bench_with(audit)
    failed = bench.fail(b"r@b.example", b"s@b.example")
    bench.task.start()
    bench.run(5)
    assert [(told.action, told.spool_id, told.number, told.status) for told in audit.told] == [
        (Action.REPORTED, failed, 1, "bounced"),
        (Action.REPORTED, failed, 2, "bounced"),
    ]
    (report,) = {told.report for told in audit.told}
    assert report is not None
    assert b"%016X: sender non-delivery notification: %016X" % (failed, report) in bench.maillog.lines
    assert (audit.told[0].host, audit.told[0].reply) == (b"mx.b.example[192.0.2.1]:25", audit.told[1].reply)


def test_without_reports_bounces_are_discarded() -> None:
    audit = Kept()
    bench = bench_with(audit, generate_ndr=False)
    bench.fail()
    bench.task.start()
    bench.run(5)
    assert [(told.action, told.report) for told in audit.told] == [(Action.DISCARDED, None)]
