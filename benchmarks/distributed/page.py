"""The page of a large site, made anew from what was measured: no figure in it is typed by hand.

The words are in scale.template, and scale_large.template where a large queue was measured. Pure but for `write_page`.
"""

from __future__ import annotations

from pathlib import Path
from string import Template

from benchmarks.distributed.figures import SERVICES, Message, Run
from benchmarks.distributed.kept import Figures
from benchmarks.distributed.large import Large, Step
from benchmarks.distributed.prices import ROW_BYTES
from benchmarks.distributed.scale import (
    A_SLICE,
    DAY_S,
    HOUR_S,
    TABLES,
    Change,
    Needed,
    Site,
    content_in_row,
    due_rows_per_s,
    needed,
    row_bytes,
    row_in_trigger,
    slice_window_s,
    slices,
)
from benchmarks.results.report import number, table
from mailismus.queue.providers.distributed.due.firing import LATE_S
from mailismus.queue.providers.distributed.due.schedule import NEAR_S
from mailismus.queue.providers.distributed.format.due import SLOT_S

COMMAND = (
    "python -m benchmarks.distributed --record docs/evidence/distributed-figures.json --write docs/distributed-scale.md"
)
HERE = Path(__file__).parent
NAMES = {"swift": "object store", "cassandra": "database", "rabbitmq": "broker"}
MILLION = 1_000_000
PACE = 1000
PREFETCH = 1000
LONGEST, LAST = 50, 30
"""Of what a step told: letters, and those that are shown of more."""
_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def write_page(path: Path, figures: Figures) -> None:
    """Write it. Raises: LookupError where something was not measured."""
    path.write_text(page(figures, Site()))


def page(figures: Figures, site: Site) -> str:
    """All of it."""
    return Template((HERE / "scale.template").read_text()).substitute(_words(figures, site))


def _words(figures: Figures, site: Site) -> dict[str, str]:
    found = needed(figures, site)
    window, buckets = slices(site)
    trigger, row = (way(figures, site, found.elsewhere) for way in (row_in_trigger, content_in_row))
    ten, plain = figures.run(1, recipients=10).message, figures.run(1)
    return {
        "an_hour": f"{site.messages_per_hour:,}",
        "a_second": f"{site.rate:,.0f}",
        "command": COMMAND,
        "deferred": f"{site.deferred:.0%}",
        "waiting": f"{site.waiting_s / 60:.0f}",
        "copies": str(site.copies),
        "keep": f"{site.keep_s / HOUR_S:.0f}",
        "node_cores": str(site.node_cores),
        "busy": f"{site.busy:.0%}",
        "message_table": _message_table(figures, found),
        "processes": str(found.processes),
        "elsewhere": f"{found.elsewhere:.0%}",
        "machine": figures.machine,
        "site_table": _site_table(found),
        "swift_call": number(_a_call(plain, "swift")),
        "row_bytes": f"{row_bytes(figures, site):.0f}",
        "tombstones": f"{float(f'{found.tombstones:.3g}'):,.0f}",
        "prefetched": f"{PREFETCH * found.processes:,}",
        "piles_up": _size(found.to["rabbitmq"] * HOUR_S / DAY_S),
        "a_slice": f"{A_SLICE:,}",
        "alone": str(slice_window_s(site)),
        "due_rows": f"{float(f'{due_rows_per_s(site, found.processes):.2g}'):,.0f}",
        "due_times": f"{(LATE_S + NEAR_S) / SLOT_S:.0f}",
        "short_slices": _short_slices(figures),
        "window": str(window),
        "buckets": str(buckets),
        "in_partition": f"{window * site.rate / buckets:,.0f}",
        "moves": number(site.rate / PACE),
        "pace": f"{float(f'{2 * window * site.rate:.2g}'):,.0f}",
        "ways_table": _ways_table([trigger, row]),
        "row_copy": str(ROW_BYTES),
        "trigger_saves": _saves(trigger),
        "row_saves": _saves(row),
        "row_disk": _size(row.rows_disk),
        "rows_disk": _size(found.rows_disk),
        "row_times": number(round(1 + row.rows_disk / found.rows_disk, 1)),
        "large": _large(figures),
        "ten_ms": number(ten.cpu_ms),
        "ten_each": number(ten.cpu_ms / 10),
        "delivered": number(plain.delivered_per_s),
        "cores": figures.machine.split(",")[0],
    }


def _message_table(figures: Figures, found: Needed) -> str:
    one, two = figures.run(1), figures.run(2)
    messages = (one.message, two.message, found.message)
    counts = {
        "PUT": ("swift", "PUT"),
        "GET": ("swift", "GET"),
        "DELETE": ("swift", "DELETE"),
        "writes": ("cassandra", "write"),
        "compare and set": ("cassandra", "compare"),
        "reads": ("cassandra", "read"),
        "publishes": ("rabbitmq", "publish"),
    }
    rows = [
        [what, *(f"{round(message.count(*name), 2) + 0.0:.2f}" for message in messages)] for what, name in counts.items()
    ]
    rows.append(["our CPU, ms", *(number(message.cpu_ms) for message in messages)])
    for name in SERVICES:
        rows.append([f"CPU of the {NAMES[name]}, ms", *(number(message.service_ms[name]) for message in messages)])
        both = [f"{message.bytes_to[name]:,.0f}, {message.bytes_back[name]:,.0f}" for message in messages]
        rows.append([f"bytes to the {NAMES[name]}, from it", *both])
    return table(["a message", "1 server", "2 servers", f"{found.processes} servers, computed"], rows)


def _site_table(found: Needed) -> str:
    disk = {"cassandra": _size(found.rows_disk), "swift": f"{_size(found.contents_disk)} of contents", "rabbitmq": "-"}
    rows = [["servers of ours", f"{found.processes} processes", f"{found.our_cores:.0f}", "-", "-", "-"]]
    for name in SERVICES:
        traffic = f"{_size(found.to[name])} to it, {_size(found.back[name])} from it"
        cells = [f"{found.nodes[name]} nodes", f"{found.cores[name]:.0f}", f"{found.calls_per_s[name]:,.0f}", traffic]
        rows.append([NAMES[name], *cells, disk[name]])
    return table(["", "how many", "cores in use", "calls a second", "bytes a day", "disk, all copies"], rows)


def _a_call(run: Run, service: str) -> float:
    """Milliseconds of a processor of the service."""
    return run.message.service_ms[service] / sum(run.message.calls[service].values())


def _short_slices(figures: Figures) -> str:
    """What short slices cost; empty: it was not measured."""
    plain = figures.run(1).message
    for run in figures.runs:
        if run.servers == 1 and run.slice_s < 60 and run.recipients == 1 and not run.turns:
            short, long = (_rows_of(message) for message in (run.message, plain))
            return f" With slices of {run.slice_s} s a message had {short}, with those of an hour {long}."
    return ""


def _rows_of(message: Message) -> str:
    writes, reads = (message.count("cassandra", verb) for verb in ("write", "read"))
    return f"{writes:.1f} writes and {reads:.1f} reads"


def _ways_table(ways: list[Change]) -> str:
    header = ["", "calls a message", "our CPU, ms a message", *(f"{NAMES[name]}, ms a message" for name in SERVICES)]
    header += ["our cores", "cores of services", "bytes a day", "rows on the disk"]
    rows = []
    for way in ways:
        calls = ", ".join(f"{name} {value:+.2f}" for name, value in way.calls.items())
        theirs = [_signed(way.theirs_ms.get(name, 0.0)) for name in SERVICES]
        cores = [_signed(way.our_cores), _signed(sum(way.cores.values()))]
        sizes = [_signed_size(way.bytes_per_day), _signed_size(way.rows_disk)]
        rows.append([way.name, calls, _signed(way.ours_ms), *theirs, *cores, *sizes])
    return table(header, rows)


def _saves(way: Change) -> str:
    ours, theirs = (_saved(-cores) for cores in (way.our_cores, sum(way.cores.values())))
    return f"Of our cores it {ours}, of those of services it {theirs}."


def _saved(cores: float) -> str:
    return f"saves {number(round(cores, 1))}" if cores >= 0 else f"costs {number(round(-cores, 1))} more"


def _large(figures: Figures) -> str:
    if not figures.large:
        return ""
    *smaller, large = figures.large
    tables = sum(large.disk.get(name, 0.0) for name in (*TABLES, "due_mails"))
    words = {
        "entries": f"{large.entries:,}",
        "messages": f"{large.messages:,}",
        "compared": f": {_compared(smaller[-1], large)}" if smaller else " by their design; no second size was measured",
        "steps_table": table(_STEPS, [_step(step, large) for step in large.steps]),
        "tables": _size(tables),
        "an_entry": f"{tables / large.entries:.0f}",
        "million": _size(tables * MILLION / large.entries),
        "limits": _limits(large),
    }
    return Template((HERE / "scale_large.template").read_text()).substitute(words)


_STEPS = ["step", "s", "of a million, s", "told", "server MiB", "reads", "writes"]


def _step(step: Step, large: Large) -> list[str]:
    """A row of the table."""
    grown = step.seconds * MILLION / large.entries if step.grows else step.seconds
    memory = f"{step.most_bytes >> 20}" if step.most_bytes else "-"
    calls = [f"{count:,.0f}" for count in (step.rows_read, step.rows_written)]
    told = step.told if len(step.told) <= LONGEST else f"... {step.told[-LAST:].partition(' ')[2]}"
    return [step.what, number(step.seconds), number(round(grown, 1)), told, memory, *calls]


def _compared(small: Large, large: Large) -> str:
    """What took as long in a smaller queue."""
    found: list[str] = []
    for step in small.steps:
        other = next((one for one in large.steps if one.what == step.what and not one.grows), None)
        if other is not None and not any(one.startswith(f"{step.what} ") for one in found):
            found.append(f"{step.what} {number(step.seconds)} and {number(other.seconds)} s")
    return f"{', '.join(dict.fromkeys(found))} with {small.entries:,} and {large.entries:,} entries"


def _limits(large: Large) -> str:
    put_in = large.messages / large.took("fill")
    text = f"each message is an object and an answer of each store, {put_in:.0f} messages a second here."
    if deleting_s := large.took("queue delete"):
        each = large.messages / deleting_s
        text += f" A delete moves each message by a claim and a batch of its own, {each:.0f} a second."
    each = large.entries / large.took("queue list")
    return f"{text} A list reads all that lives, {each:,.0f} entries a second; a flush reads it too, and publishes."


def _size(value: float) -> str:
    for unit, name in _UNITS:
        if value >= unit:
            return f"{number(float(f'{value / unit:.3g}'))} {name}"
    return f"{value:.0f} bytes"


def _signed(value: float) -> str:
    return f"{value:+.2f}" if abs(value) < 10 else f"{value:+.0f}"


def _signed_size(value: float) -> str:
    return "0" if not value else f"{'+' if value > 0 else '-'}{_size(abs(value))}"
