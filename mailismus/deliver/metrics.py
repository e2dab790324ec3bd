"""Metrics of delivery."""

from __future__ import annotations

from mailismus.deliver.task import DeliverTask
from mailismus.dns.counters import DnsCounters
from mailismus.observe.metrics import Metric, Number, counter, gauge, histogram

Counts = dict[tuple[str, ...], Number]


def _by_status(task: DeliverTask) -> Counts:
    counters = task.counters
    return {
        ("sent",): counters.delivered,
        ("deferred",): counters.deferred - counters.expired,
        ("bounced",): counters.failed,
        ("expired",): counters.expired,
    }


METRICS: tuple[Metric[DeliverTask], ...] = (
    counter(
        "mailismus_deliveries_total",
        "Attempts by `status`, as in the log; one for each recipient.",
        _by_status,
        "status",
    ),
    counter(
        "mailismus_deliver_in_doubt_total",
        "Entries in doubt: they may have been sent, and are tried again.",
        lambda t: t.counters.in_doubt,
    ),
    counter("mailismus_deliver_taken_total", "Entries taken from the queue.", lambda t: t.counters.taken),
    counter("mailismus_deliver_given_back_total", "Of these, those given back untried.", lambda t: t.counters.given_back),
    gauge("mailismus_deliver_held_entries", "Entries held; `queuecache` limits them.", lambda t: t.held),
    counter("mailismus_deliver_transactions_total", "Transactions with other servers.", lambda t: t.counters.transactions),
    counter(
        "mailismus_deliver_conversions_total",
        "Messages converted to 7-bit content for hosts without 8BITMIME, or refused because they can't be, by `result`.",
        lambda t: {("converted",): t.sessions.conversions.converted, ("refused",): t.sessions.conversions.refused},
        "result",
    ),
    counter("mailismus_deliver_local_total", "Messages put into maildirs.", lambda t: t.counters.local_deliveries),
    counter(
        "mailismus_deliver_lmtp_total", "Recipients to whom the LMTP server has delivered.", lambda t: t.counters.stored
    ),
    gauge(
        "mailismus_deliver_local_stuck",
        "Local deliveries without progress for a minute: a file system does not answer.",
        lambda t: t.local.stuck,
    ),
    gauge(
        "mailismus_deliver_local_longest_seconds",
        "Longest time without progress of a local delivery under way; 0: none is under way.",
        lambda t: t.local.longest_s,
    ),
    counter(
        "mailismus_deliver_content_bytes_total",
        "Stored bytes of the content of successful transactions and local deliveries.",
        lambda t: t.counters.content_bytes,
    ),
    histogram(
        "mailismus_deliver_queued_seconds",
        "Time from a message's arrival to its delivery, for each recipient.",
        lambda t: t.counters.queued_s,
    ),
    histogram(
        "mailismus_deliver_sending_seconds",
        "Duration of transactions and local deliveries that delivered something.",
        lambda t: t.counters.sending_s,
    ),
    gauge(
        "mailismus_deliver_connections",
        "Connections to other servers, including those being opened.",
        lambda t: t.sessions.open,
    ),
    counter("mailismus_deliver_connections_total", "Connections to other servers.", lambda t: t.counters.connections),
    counter(
        "mailismus_deliver_connections_failed_total",
        "Of these, those without a session.",
        lambda t: t.counters.connections_failed,
    ),
    counter(
        "mailismus_deliver_tls_sessions_total",
        "Sessions over TLS by demanded `level`, and whether the `handshake` was full or resumed an earlier session.",
        lambda t: {**t.counters.tls_sessions},
        "level",
        "handshake",
    ),
    counter(
        "mailismus_deliver_tls_failures_total",
        "Sessions that missed TLS, by demanded `level` and `failure`. At opportunistic the mail goes without it.",
        lambda t: {**t.counters.tls_failures},
        "level",
        "failure",
    ),
    counter(
        "mailismus_deliver_auth_sessions_total",
        "Sessions in which a relay accepted the credentials.",
        lambda t: t.counters.auth_sessions,
    ),
    counter(
        "mailismus_deliver_auth_failures_total",
        "Sessions that were not authenticated, by `failure`.",
        lambda t: {**t.counters.auth_failures},
        "failure",
    ),
    gauge("mailismus_deliver_next_hops", "Next hops with state in memory.", lambda t: len(t.sessions.schedule.destinations)),
    gauge(
        "mailismus_deliver_waiting_jobs",
        "Jobs that wait for a connection because `maxconnections` is used up or their message has its share.",
        lambda t: len(t.sessions.schedule.line),
    ),
    counter(
        "mailismus_deliver_holds_total",
        "What has held mail back for a second or longer, by the words of `mailismus why`. Dead hosts count at once.",
        lambda t: {(hold.value,): number for hold, number in t.holds.begun.items()},
        "hold",
    ),
    gauge(
        "mailismus_deliver_holds",
        "Of these, what holds mail back now.",
        lambda t: {(hold.value,): number for hold, number in t.holds.present().items()},
        "hold",
    ),
    gauge(
        "mailismus_deliver_troubled_hosts",
        "Hosts that have failed and had no session since.",
        lambda t: t.hosts.remembered,
    ),
)

NAMES: tuple[Metric[DnsCounters], ...] = (
    counter(
        "mailismus_dns_questions_total",
        "Questions that the cache did not answer; the same question of several callers counts once.",
        lambda c: c.questions,
    ),
    counter("mailismus_dns_cache_hits_total", "Questions that the cache answered.", lambda c: c.cache_hits),
    counter("mailismus_dns_queries_total", "Messages sent to name servers.", lambda c: c.queries),
    counter("mailismus_dns_answers_total", "Messages that answered a question, including denials.", lambda c: c.answers),
    counter("mailismus_dns_failures_total", "Questions that no server answered.", lambda c: c.failures),
    counter("mailismus_dns_timeouts_total", "Name servers that did not answer in time.", lambda c: c.timeouts),
    counter("mailismus_dns_unreachable_total", "Name servers that could not be reached.", lambda c: c.refused),
    counter(
        "mailismus_dns_server_failures_total",
        "SERVFAIL, REFUSED and other refusals, and unusable answers.",
        lambda c: c.server_failures,
    ),
    counter("mailismus_dns_forged_total", "Messages that matched no question.", lambda c: c.forged),
    counter("mailismus_dns_truncated_total", "Answers that were repeated by TCP.", lambda c: c.truncated),
    counter("mailismus_dns_rejected_total", "Questions rejected because too many waited.", lambda c: c.rejected),
)
