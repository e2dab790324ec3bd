"""What was promised, looked at in every state.

I1 an acknowledged, unsettled recipient is live.  I2 a live entry has its bytes.  I3 what was settled durably is not live
again, a retry not undone.  I4 all recipients of a message or none; no entry of nobody, none twice.  I5 when all is settled
two checkpoints leave no file (`explore`).  I6 bytes go only after the last durable settle (`spool`).  I7 what was answered
451 may come back whole, nothing worse.  I8 crashes alone never look like a damaged journal (`replay`).
"""

from __future__ import annotations

from tests.durability.model.disk import Disk
from tests.durability.model.records import QueueId
from tests.durability.model.replay import live_lines
from tests.durability.model.search import Broken
from tests.durability.model.state import LIVE, OVER, Memory, Sent, Setting


def check(disk: Disk, memory: Memory, sent: tuple[Sent, ...], setting: Setting) -> None:
    """Raises `Broken` when one of them does not hold."""
    generations: dict[QueueId, str] = dict(live_lines(disk, memory).keys())
    reported = {one.reports for one in sent if one.spool_id in {queue_id[0] for queue_id in generations}}
    if reported & generations.keys():
        raise Broken(f"I4: a bounce is live beside its report: {sorted(generations)}")
    known = {one.spool_id for one in sent if one.status in "sar"}
    if any(queue_id[0] not in known for queue_id in generations):
        raise Broken(f"I4: an entry of nobody: {sorted(generations)}")
    for number, one in enumerate(sent):
        if one.status in "-x" or one.spool_id is None:
            continue
        alive = 0
        for recipient, (fate, sure, asked) in enumerate(one.fates):
            generation, who = generations.get((one.spool_id, recipient)), f"message {number} recipient {recipient}"
            if generation is None:
                if one.status == "a" and fate == LIVE and (one.spool_id, recipient) not in reported:
                    raise Broken(f"I1: {who} is lost")
                continue
            alive += 1
            if fate == OVER:
                raise Broken(f"I3: {who} was settled and is live")
            if not sure <= generation <= asked:
                raise Broken(f"I3: a durable retry is undone: {who}")
            if (one.spool_id, number) not in memory.contents and not (
                disk.now("M", one.spool_id, setting.name_of(number, recipient)) and disk.now("D", one.spool_id) == number
            ):
                raise Broken(f"I2: {who} is live without its bytes")
        is_touched = any(fate or asked != "0i" for fate, _, asked in one.fates)
        if one.status in "sr" and not is_touched and 0 < alive < len(one.fates):
            raise Broken(f"I4: half of message {number}")
