"""The ledger: what was promised, what became of it, and what must not be.

*Rules*: what was answered is delivered, or reported in one report, and never both. What was refused by a server that went
on is delivered to nobody; what was not answered, because its server was killed, to all or to nobody. What was delivered is
delivered again only where the outcome was not durable when its server was killed. A report that a killed server had sent
to the database, and that comes when another one has made its own, is one too many, and allowed.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Sequence

import attrs

from mailismus.mail.ids import QueueId, SpoolId


class Broken(AssertionError):
    """What must hold does not."""


class Answer(enum.Enum):
    """What was said of a message to who sent it."""

    NONE = "none"
    TAKEN = "taken"
    REFUSED = "refused"


@attrs.define(eq=False)
class Mail:
    """A message. `reports`: what a report reports."""

    spool_id: SpoolId
    recipients: tuple[bytes, ...]
    content: bytes
    server: str
    reports: tuple[QueueId, ...] = ()
    answer: Answer = Answer.NONE

    def queue_ids(self) -> list[QueueId]:
        """Of its entries."""
        return [QueueId(self.spool_id, number) for number in range(1, len(self.recipients) + 1)]


@attrs.define(eq=False)
class Outcome:
    """Of an entry that a server has delivered. `is_told`: the queue has said that it is durable."""

    server: str
    queue_id: QueueId
    is_told: bool = False


class Ledger:
    """The ledger of one trial."""

    def __init__(self) -> None:
        self.mails: dict[SpoolId, Mail] = {}
        self.delivered: Counter[QueueId] = Counter()
        self.deleted: dict[QueueId, bool] = {}
        """By an administrator; whether that was told to be done."""
        self._outcomes: list[Outcome] = []
        self._allowed: Counter[QueueId] = Counter()
        self._killed: set[str] = set()
        self._late: set[str] = set()

    def add(self, mail: Mail) -> None:
        """A message is about to be committed."""
        self.mails[mail.spool_id] = mail

    def check_content(self, spool_id: SpoolId, content: bytes) -> None:
        """A message was read."""
        mail = self.mails.get(spool_id)
        if mail is None:
            raise Broken(f"{spool_id:016X} is nobody's message")
        if mail.content != content:
            raise Broken(f"{spool_id:016X} has another content")

    def deliver(self, server: str, queue_id: QueueId) -> Outcome:
        """An entry is delivered; its outcome is about to be written."""
        self.delivered[queue_id] += 1
        outcome = Outcome(server, queue_id)
        self._outcomes.append(outcome)
        return outcome

    def kill(self, server: str, is_durable: Callable[[QueueId], bool]) -> None:
        """A server is killed. `is_durable`: whether the outcome of an entry is in the database at this moment."""
        self._killed.add(server)
        for outcome in self._outcomes:
            if outcome.server == server and not outcome.is_told and not is_durable(outcome.queue_id):
                self._allowed[outcome.queue_id] += 1

    def come_late(self, server: str) -> None:
        """What a killed server sent came late."""
        self._late.add(server)

    def state(self) -> object:
        """What a check depends on, beside what is still to come."""
        answers = sorted((mail.spool_id, mail.answer.value) for mail in self.mails.values())
        return answers, sorted(self.delivered.items()), sorted(self._allowed.items()), sorted(self.deleted.items())

    def check(self, reports: int | None = None) -> None:
        """All is over. `reports`: how many there are, where it is known."""
        made = [mail for mail in self.mails.values() if mail.reports and self.delivered[QueueId(mail.spool_id, 1)]]
        if reports is not None and len(self._in_time(made)) != reports:
            raise Broken(f"{len(made)} reports, not {reports}")
        for queue_id, count in self.delivered.items():
            if count > 1 + self._allowed[queue_id]:
                raise Broken(f"delivered twice: {name_of(queue_id)}")
        for mail in self.mails.values():
            self._check_mail(mail)

    def _check_mail(self, mail: Mail) -> None:
        ended = [queue_id for queue_id in mail.queue_ids() if self._is_over(queue_id)]
        missing = sorted(set(mail.queue_ids()) - set(ended))
        what = "report" if mail.reports else "message"
        if mail.answer is Answer.TAKEN and missing:
            raise Broken(f"lost: {what} {', '.join(map(name_of, missing))}")
        if mail.answer is Answer.REFUSED and ended and mail.server not in self._killed:
            raise Broken(f"refused, and delivered: {what} {', '.join(map(name_of, ended))}")
        if ended and missing:
            raise Broken(f"a part of a message alone was there: {', '.join(map(name_of, ended))}")

    def _is_over(self, queue_id: QueueId) -> bool:
        reports = self._reports_of(queue_id)
        is_delivered, is_deleted = self.delivered[queue_id] > 0, self.deleted.get(queue_id, False)
        if len(self._in_time(reports)) > 1:
            raise Broken(f"in {len(reports)} reports: {name_of(queue_id)}")
        if is_delivered and reports:
            raise Broken(f"delivered, and reported: {name_of(queue_id)}")
        if is_deleted and (is_delivered or reports):
            raise Broken(f"deleted, and delivered: {name_of(queue_id)}")
        return is_delivered or bool(reports) or queue_id in self.deleted

    def _in_time(self, reports: Sequence[Mail]) -> Sequence[Mail]:
        """Without those that came late beside others."""
        some = [one for one in reports if one.answer is not Answer.NONE or one.server not in self._late]
        return some or reports

    def _reports_of(self, queue_id: QueueId) -> Sequence[Mail]:
        """The reports that name an entry, and were delivered."""
        reports = (mail for mail in self.mails.values() if queue_id in mail.reports)
        return [report for report in reports if self.delivered[QueueId(report.spool_id, 1)]]


def name_of(queue_id: QueueId) -> str:
    """Its name for people."""
    return f"{queue_id.spool_id:016X}/{queue_id.number}"
