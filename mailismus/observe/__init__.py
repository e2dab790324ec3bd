"""Logs and metrics.

Modules, each with what it is:

    text                escapes untrusted bytes for logs and terminals. Pure
    maillog             interface of the mail log
    audit               the lines of audit logs. Pure
    audit_file          one audit file: open, append, rotate; in a thread
    audit_log           audit lines, buffered and written in a thread
    metrics             tables of metrics. Pure
    overview            the figures of a running server at one moment. Pure
    habits              what receivers did lately. Pure
    figures             what two overviews tell: rates and sums. Pure
    hop_order           the order of next hops. Pure
    hold_words          what words of reasons mean. Pure
    history             earlier overviews, and the rates of the last minutes. Pure
    amounts             numbers, sizes and times in few characters. Pure
    grades              how bad a reason, an outcome or a figure is. Pure
    metrics_process     metrics of the process and the reactor
    metrics_page        all metrics as text for Prometheus
    metrics_endpoint    `GET /metrics`
"""
