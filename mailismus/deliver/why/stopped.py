"""Explains entries by the files of a stopped queue: what the queue knows of them, and which hosts were dead.

*Rules*: a host is found by its address and port in the entry's last reply: names are not looked up. A file of hosts that
can't be read tells nothing, as at a start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mailismus.deliver.knowledge.host_records import HostRecord
from mailismus.deliver.why import sentences
from mailismus.deliver.why.explain import settled_reason
from mailismus.deliver.why.hold import Hold
from mailismus.deliver.why.limits import with_port
from mailismus.deliver.why.sentences import Times, clear, said
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Entry, Message
from mailismus.queue.waiting import Waiting

MAX_TOLD = 20
"""Hosts that are told of a domain."""

_LABEL = re.compile(rb"([^ \[\]]*)\[([0-9A-Fa-f.:]+)\]:([0-9]{1,5})")


class StoppedExplanations:
    """`queue.waiting.Explanations` of a stopped queue. `records`: of its state file; `now`: UTC seconds."""

    def __init__(self, records: Sequence[HostRecord], now: float) -> None:
        self._dead = {record.key: record for record in records if record.failures and record.retry_at > now}
        self._times = Times(now, now)

    def of(self, messages: Sequence[Message], *, is_brief: bool) -> Mapping[QueueId, Waiting]:
        """As `Explanations`."""
        return {
            QueueId(message.spool_id, entry.number): self._explain(entry)
            for message in messages
            for entry in message.entries
        }

    def _explain(self, entry: Entry) -> Waiting:
        reason = settled_reason(entry, self._times)
        if reason is None:
            sentence = sentences.no_server()
            hold = Hold.START
        else:
            sentence, hold = reason.sentence, reason.hold
        dead = self._dead_host_of(entry) if hold is not Hold.REPORT else ""
        return Waiting(hold.value, f"{sentence}{dead}".encode("utf-8", "backslashreplace"))

    def _dead_host_of(self, entry: Entry) -> str:
        text = entry.host if entry.reply is None else b"%b %b" % (entry.host, bytes(entry.reply))
        for name, address, port in _LABEL.findall(text):
            record = self._dead.get((address.decode("ascii"), int(port)))
            if record is not None:
                shown = with_port(clear(name or address), int(port))
                return f"; {shown} is left alone until {self._times.at(record.retry_at)}"
        return ""

    def of_domain(self, domain: bytes) -> Sequence[bytes]:
        """As `Explanations`. The file knows addresses: a host is that of the domain if its last reply names it."""
        found = []
        for record in self._dead.values():
            words = b"" if record.reply is None else bytes(record.reply).lower()
            names = [name.lower() for name, _, _ in _LABEL.findall(words)]
            if any(name == domain or name.endswith(b"." + domain) for name in names):
                since, until = self._times.at(record.noted_at), self._times.at(record.retry_at)
                where = f"[{record.address}]:{record.port}"
                found.append(f"{where} is left alone since {since} until {until}; {said(record.reply)}".encode())
        return found[:MAX_TOLD]
