"""The main path against Postfix: `python -m benchmarks.main_path`. What is measured and what it means: docs/benchmarks.md.

Each run has a server of its own, freshly started with an empty queue, and a sink on a port of its own; ours and Postfix
take turns. Everything is bounded in number and time, and every process is ended, also on errors.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import attrs

from benchmarks.measure import barriers as trace
from benchmarks.measure.budget import BUDGET_US, budget_table, heaviest, shares, thread_shares
from benchmarks.measure.calls import Calls, count_calls
from benchmarks.measure.costs import Machine, cpu_of, pss_bytes
from benchmarks.measure.disk_bytes import device_bytes
from benchmarks.measure.disk_calls import Counted as Counting
from benchmarks.measure.profiling import RATE_HZ, profiler, record
from benchmarks.results.report import Run, figures, ratios
from benchmarks.results.workloads import WORKLOADS, Workload
from benchmarks.stage.contenders import Contender, check_out
from benchmarks.stage.directories import Stage, stage
from benchmarks.stage.load import Sink, TlsSink, send
from benchmarks.stage.progress import say
from benchmarks.stage.providers import add_option, chosen
from benchmarks.stage.running import QUIET_S, TIMEOUT_S, running
from benchmarks.stage.servers import TREE, Extras, Other, Ours, Postfix, Server
from tests.support.processes import TrialError

BARRIER_MESSAGES = 1000
TLS_OURS = '<client><tls level="encrypt"/></client>'
TLS_POSTFIX = """smtp_tls_security_level = encrypt
smtp_tls_session_cache_database = btree:${data_directory}/smtp_scache"""


def measure(
    make: Callable[[], Server], at: Stage, workload: Workload, messages: int, sinks: Callable[[Path], Sink] = Sink
) -> Run:
    """One run. Raises: TrialError, also when the sink's count is not exactly what was sent."""
    with running(make, at, workload, sinks=sinks) as (server, sink, place):
        shaken = sink.handshakes() if isinstance(sink, TlsSink) else (0, 0)
        before, cpu, sink_cpu, own = sink.count(), server.account.cpu(), cpu_of(sink.process.pid), time.process_time()
        device, counts = device_bytes(place.directory), server.counts() if isinstance(server, Counting) else None
        machine = Machine.now()
        sent = send(workload, messages, server.port, place.logs, TIMEOUT_S)
        delivered_at = max(sent.ended_at, sink.wait_for(before + messages, TIMEOUT_S))
        time.sleep(QUIET_S)
        used = server.account.cpu().minus(cpu)
        load_s = sent.cpu_s + cpu_of(sink.process.pid) - sink_cpu + time.process_time() - own
        others = Machine.now().others_share(machine, used.total_s + load_s)
        pids = server.account.pids()
        whole, resumed = sink.handshakes() if isinstance(sink, TlsSink) else (0, 0)
        if sink.count() != before + messages:
            raise TrialError(f"{server.name} {workload.name}: {messages} messages sent, {sink.count() - before} at the sink")
        return Run(
            server=server.name,
            workload=workload.name,
            messages=messages,
            accepted_per_s=messages / (sent.ended_at - sent.began_at),
            delivered_per_s=messages / (delivered_at - sent.began_at),
            cpu_ms=used.total_s * 1000 / messages,
            cpu_user_share=used.user_s / used.total_s if used.total_s else 0.0,
            pss_bytes=pss_bytes(pids),
            processes=len(pids),
            others_share=others,
            whole_handshakes=whole - shaken[0],
            resumed_handshakes=resumed - shaken[1],
            device_kib=(device_bytes(place.directory) - device) / messages / 1024,
            barriers=server.counts().minus(counts).barriers / messages if isinstance(server, Counting) and counts else None,
        )


@attrs.frozen
class Counted:
    """Barriers and the number of messages they were for."""

    messages: int
    barriers: trace.Barriers


def measure_barriers(
    make: Callable[[], Server], at: Stage, workload: Workload, sinks: Callable[[Path], Sink] = Sink
) -> Counted:
    """Barriers of a shorter run under strace."""
    messages = BARRIER_MESSAGES if workload.recipients == 1 else BARRIER_MESSAGES // 5
    file = at.root / "trace"
    try:
        with running(make, at, workload, trace.command(file), sinks) as (server, sink, place):
            before = sink.count()
            sent = send(workload, messages, server.port, place.logs, TIMEOUT_S)
            sink.wait_for(before + messages, TIMEOUT_S)
            time.sleep(QUIET_S)
            ended_at = time.time()
        with file.open(errors="replace") as lines:
            counted = trace.count(lines, sent.began_at, ended_at)
        return Counted(messages, counted)
    finally:
        file.unlink(missing_ok=True)


def measure_budget(
    make: Callable[[], Server], at: Stage, workload: Workload, messages: int, cpu_ms: float, calls: Calls
) -> str:
    """The table of the hot-path budget, from a profile in a run of its own, with the calls a message beside it."""
    with running(make, at, workload) as (server, sink, place):
        before, errors = sink.count(), list[Exception]()

        def generate() -> None:
            try:
                send(workload, messages, server.port, place.logs, TIMEOUT_S)
            except TrialError as e:
                errors.append(e)

        generator = threading.Thread(target=generate)
        generator.start()
        try:
            time.sleep(0.3)  # until all sessions are busy
            taken = record(server.pid, at.logs, 3)
        finally:
            generator.join(TIMEOUT_S)
        if errors:
            raise errors[0]
        sink.wait_for(before + messages, TIMEOUT_S)
    found = shares(taken.profile, taken.thread_cpu_s, workload)
    text = [budget_table(found, cpu_ms, workload, calls.of_parts(workload)), ""]
    text.append(f"- threads: {thread_shares(taken.profile, taken.thread_cpu_s)}")
    for part in BUDGET_US:
        frames = ", ".join(f"{frame} {samples}" for frame, samples in heaviest(taken.profile, part))
        if frames:
            text.append(f"- {part}: {frames}")
    return "\n".join(text)


@attrs.define
class Results:
    """What one invocation found, filled as it goes."""

    runs: list[Run] = attrs.Factory(list)
    barriers: dict[tuple[str, str], Counted] = attrs.Factory(dict)
    budgets: dict[str, str] = attrs.Factory(dict)

    def markdown(self) -> str:
        """All tables."""
        counted = {key: value.barriers.count / value.messages for key, value in self.barriers.items()}
        parts = [figures(self.runs, counted)]
        servers = list(dict.fromkeys(run.server for run in self.runs))
        parts += [ratios(self.runs, servers[0], other) for other in servers[1:]]
        for (workload, server), value in self.barriers.items():
            if value.barriers.dsync_opens:
                note = f"{workload} {server}: {value.barriers.dsync_opens} files opened O_DSYNC or O_SYNC"
                parts.append(f"{note}: barriers are at least the number given.")
        parts += [f"Hot path of {name} (py-spy, {RATE_HZ} Hz):\n\n{text}" for name, text in self.budgets.items()]
        return "\n\n".join(part for part in parts if part)

    def json(self) -> str:
        """Everything, for later comparison."""
        barriers = [
            {"workload": workload, "server": server, "messages": value.messages, **attrs.asdict(value.barriers)}
            for (workload, server), value in self.barriers.items()
        ]
        machine = {
            "cpus": os.cpu_count(),
            "kernel": os.uname().release,
            "python": sys.version.split()[0],
            "at": int(time.time()),
        }
        runs = [attrs.asdict(run) for run in self.runs]
        return json.dumps({"machine": machine, "runs": runs, "barriers": barriers, "budgets": self.budgets}, indent=1)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.main_path", description="Mailismus against Postfix.")
    add_option(parser)
    parser.add_argument("--workload", action="append", choices=sorted(WORKLOADS), help="which (default: all)")
    parser.add_argument("--messages", type=int, default=0, help="messages a run, for every server (default: by workload)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each server and workload (default: 3)")
    parser.add_argument("--only", choices=("ours", "postfix"), help="leave the other one out")
    parser.add_argument("--previous", metavar="REVISION", help="take turns with another revision of this repository too")
    parser.add_argument(
        "--other", metavar="COMMAND", help="in place of ours: a server's command, with {port} {relay} {queue} {directory}"
    )
    parser.add_argument(
        "--tls",
        action="store_true",
        help="the sink offers STARTTLS, and every server demands it; no profile",
    )
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the queues lie (default: /var/tmp)")
    parser.add_argument("--no-barriers", action="store_true", help="do not count barriers (runs under strace)")
    parser.add_argument("--no-profile", action="store_true", help="no profile of ours for the hot-path budget")
    parser.add_argument("--json", type=Path, default=TREE / "var" / "main_path.json", help="where the results are written")
    return parser


def contenders(options: argparse.Namespace, at: Stage) -> dict[str, Callable[[], Server]]:
    """The servers by name, in the order of their turns."""
    found: dict[str, Callable[[], Server]] = {}
    extras = Extras(deliver=TLS_OURS) if options.tls else None
    if options.only != "postfix":
        command = options.other
        found["other" if command else "ours"] = (
            (lambda: Other(command)) if command else partial(Ours, extras=extras, provider=chosen(options))
        )
    if options.previous:
        tree = check_out(options.previous, at.root)
        found["previous"] = partial(Ours, "previous", tree, extras, provider=chosen(options))
    if options.only != "ours":
        found["postfix"] = partial(Postfix, extras=TLS_POSTFIX if options.tls else "")
    return found


def carry_out(options: argparse.Namespace, at: Stage, results: Results) -> None:
    """All runs, in turn."""
    servers = contenders(options, at)
    sinks = TlsSink if options.tls else Sink
    workloads = [WORKLOADS[name] for name in options.workload or WORKLOADS]
    for workload in workloads:
        for turn in range(options.runs):
            for name, make in servers.items():
                messages = options.messages or (workload.messages_postfix if name == "postfix" else workload.messages)
                run = measure(make, at, workload, messages, sinks)
                results.runs.append(run)
                say(
                    f"{workload.name} {name} {turn + 1}/{options.runs}: accepted {run.accepted_per_s:.0f}/s, delivered "
                    f"{run.delivered_per_s:.0f}/s, {run.cpu_ms:.3f} ms, others {run.others_share:.0%}"
                    + (f", handshakes {run.whole_handshakes} + {run.resumed_handshakes} resumed" if options.tls else "")
                )
        if not options.no_barriers:
            for name, make in servers.items():
                counted = results.barriers[workload.name, name] = measure_barriers(make, at, workload, sinks)
                say(f"{workload.name} {name}: {counted.barriers.count} barriers for {counted.messages} messages")
    first = next(iter(servers))
    if options.no_profile or options.tls or first != "ours":
        return
    if profiler() is None:
        say("no profile: py-spy is not installed")
        return
    for workload in workloads:
        own = [run.cpu_ms for run in results.runs if run.server == first and run.workload == workload.name]
        messages = options.messages or workload.messages
        calls = count_calls(Contender(first), at, workload, provider=chosen(options))
        cpu_ms = sorted(own)[len(own) // 2]
        results.budgets[workload.name] = measure_budget(servers[first], at, workload, messages, cpu_ms, calls)


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0, or 1 when a run failed (what was measured until then is shown)."""
    options = arguments().parse_args(argv)
    results, code = Results(), 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that everything is ended then too
    try:
        with stage(options.directory) as at:
            carry_out(options, at, results)
    except (TrialError, subprocess.SubprocessError) as e:
        say(f"stopped: {e}")
        code = 1
    except KeyboardInterrupt:
        say("interrupted")
        code = 1
    if results.runs:
        print(results.markdown())
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(results.json() + "\n")
        say(f"written: {options.json}")
    return code


if __name__ == "__main__":
    sys.exit(main())
