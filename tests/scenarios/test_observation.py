"""Metrics and audit logs of a whole server: asked for by HTTP, rotated, and refused at the start."""

from __future__ import annotations

import json
import re
import signal
import smtplib
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from mailismus.queue.providers.chunk import metrics as chunk
from mailismus.queue.providers.clustered import metrics as clustered
from mailismus.queue.providers.distributed import metrics as distributed
from mailismus.queue.providers.log import metrics as log
from tests.observe.metrics_tables import METRICS
from tests.project.runners import await_text, command, environment, running

CONFIG = """\
<mailserver>
  <application><announcehost>mx.example.net</announcehost><dirpaths><root>.</root></dirpaths></application>
  <directory><domains>home.example</domains><users>joe</users><postmaster>joe</postmaster></directory>
  <mta>
    <submit><listeners><listener name="IN" interface="127.0.0.1" port="0">
      <server><relay_clients>127.0.0.1</relay_clients></server></listener></listeners></submit>
    <deliver>
      <audit>%DIRLOG%/a/delivered.log</audit></deliver>
    <report><audit format="json">%DIRLOG%/a/bounced-%DT%.log</audit></report>
  </mta>
  <admin>
    <metrics port="0"/></admin>
</mailserver>
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "mailismus.xml"
    path.write_text(CONFIG)
    return path


def send(port: int, *recipients: str) -> None:
    with smtplib.SMTP("127.0.0.1", port, timeout=30) as client:
        client.sendmail("a@src.example", recipients, b"Subject: x\r\n\r\nHello\r\n")


def scrape(port: int) -> dict[tuple[str, ...], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    return {(sample.name, *sample.labels.values()): sample.value for family in parse(text) for sample in family.samples}


OF_A_QUEUE = {
    "clustered": {metric.name for metric in clustered.METRICS},
    "log": {metric.name for metric in log.METRICS},
    "chunk": {metric.name for metric in chunk.METRICS},
    "distributed": {metric.name for metric in distributed.METRICS},
}
"""Names of the metrics that queues of one provider show."""
BATCHES = {
    "clustered": "mailismus_journal_barrier_seconds_count",
    "log": "mailismus_log_barrier_seconds_count",
    "chunk": "mailismus_chunk_batches_total",
}


@pytest.mark.parametrize("provider", BATCHES)
def test_mail_is_counted_and_audited_and_the_audit_is_rotated(config: Path, provider: str) -> None:
    config.write_text(CONFIG.replace("<mta>", f'<mta><queue provider="{provider}"/>'))
    logs = config.parent / "var/logs/a"
    with running(command("foreground", str(config)), config.parent) as (process, output):
        ports = [int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", await_text(output, "ready: IN="))]
        metrics_port, port = ports[-2:]
        send(port, "joe@home.example")
        with pytest.raises(smtplib.SMTPRecipientsRefused):
            send(port, "nobody@home.example")
        first = await_text(logs / "delivered.log", " Delivered id=")
        found = scrape(metrics_port)
        (logs / "delivered.log").rename(logs / "old.log")
        process.send_signal(signal.SIGUSR1)
        await_text(output, "The log was reopened")
        send(port, "joe@home.example")
        second = await_text(logs / "delivered.log", " Delivered id=")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
    assert "Traceback" not in output.read_text()
    shape = r"\d{4}-\d\d-\d\d [\d:]{8}\.\d{3} Delivered id=[0-9A-F]{16}-1; From=a@src\.example via 127\.0\.0\.1; "
    for lines in (first, second, (logs / "old.log").read_text()):
        assert re.fullmatch(shape + r"To=joe@home\.example - Transit=(\d+s)?(\d+ms)?\n", lines)
    assert first != second
    assert found["mailismus_submit_messages_total", "IN"] == 1
    assert found["mailismus_submit_refused_total", "550", "RCPT", "IN"] == 1
    assert found["mailismus_deliveries_total", "sent"] == 1
    assert found["mailismus_audit_lines_total", "delivered"] == 1
    assert found[BATCHES[provider],] >= 2
    assert found["process_open_fds",] > 5
    shown = {name.removesuffix("_bucket") for name, *_ in found if name.startswith("mailismus_")}
    described = {metric.name for metric in METRICS} - set().union(*OF_A_QUEUE.values()) | OF_A_QUEUE[provider]
    assert {name.removesuffix("_count").removesuffix("_sum") for name in shown} <= described
    missing = {"mailismus_checkpoint_last_timestamp_seconds", "mailismus_certificate_expiry_timestamp_seconds"}
    missing |= {f"mailismus_deliver_tls_{what}_total" for what in ("sessions", "failures")}
    missing.add("mailismus_deliver_auth_failures_total")
    assert described - shown <= missing
    assert (logs / next(path.name for path in logs.glob("bounced-*"))).read_text() == ""


def test_a_recipient_who_is_gone_is_audited_with_the_report_of_it(config: Path) -> None:
    text = CONFIG.replace("<users>joe</users>", "<users>joe|ann</users>")
    config.write_text(text.replace("<deliver>", "<deliver><delay_start>1h</delay_start>"))
    with running(command("foreground", str(config)), config.parent) as (process, output):
        port = int(re.findall(r"IN=127\.0\.0\.1:(\d+)", await_text(output, "ready: IN="))[0])
        send(port, "ann@home.example")
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    config.write_text(CONFIG)
    with running(command("foreground", str(config)), config.parent) as (process, output):
        await_text(output, "ready: IN=")
        (path,) = (config.parent / "var/logs/a").glob("bounced-*")
        record = json.loads(await_text(path, "reported").splitlines()[0])
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert (record["recipient"], record["status"], record["relay"]) == ("ann@home.example", "bounced", "local")
    assert f"{record['spid']}: sender non-delivery notification: {record['report']}" in output.read_text()


def refuse(config: Path) -> tuple[int, str]:
    done = subprocess.run(
        command("foreground", str(config)),
        cwd=config.parent,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


def test_an_audit_log_that_can_not_be_written_refuses_the_start_where_it_stands(config: Path) -> None:
    (config.parent / "var/logs/a/delivered.log").mkdir(parents=True)
    status, message = refuse(config)
    assert (status, message.count("\n")) == (78, 1)
    assert message.startswith(f"{config}:8: the audit log {config.parent}/var/logs/a/delivered.log can't be written: ")


def test_a_port_for_metrics_that_is_in_use_refuses_the_start(config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config.write_text(CONFIG.replace('<metrics port="0"', f'<metrics port="{taken.getsockname()[1]}"'))
        status, message = refuse(config)
    assert (status, message.count("\n")) == (75, 1)
    assert "'metrics'" in message
    assert "the address is in use" in message
