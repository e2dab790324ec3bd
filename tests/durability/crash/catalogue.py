"""Which operations the workloads of a provider are made of."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from mailismus.queue.interface import Area
from tests.durability.crash import beside_operations as beside
from tests.durability.crash import chunk_operations as chunk
from tests.durability.crash import clustered_operations as own
from tests.durability.crash import log_operations as log
from tests.durability.crash import operations as common
from tests.durability.crash.operations import Operation
from tests.durability.subjects.interface import Subject


@attrs.frozen
class Catalogue:
    """The operations of a provider by name."""

    operations: Mapping[str, Operation]
    """Of these all workloads of up to three are looked at."""
    more: Mapping[str, Operation]
    """What happens at the same time, and what goes wrong."""
    needs_another: tuple[str, ...]
    """Those that do not apply where there is nothing."""
    needs_young: tuple[str, ...] = ()
    """Those that do not apply where no entry is in the journal alone."""

    @property
    def every(self) -> Mapping[str, Operation]:
        """All of them."""
        return {**self.operations, **self.more}

    @property
    def alone(self) -> tuple[str, ...]:
        """Those that say something by themselves."""
        return tuple(name for name in self.every if name not in self.needs_another)


ACTS = {
    "hold": common.hold,
    "delete all": common.delete_all,
    "undo": common.undo,
    "remove what was deleted": common.remove_deleted,
    "redirect": common.redirect,
}
"""What acts of administrators do."""

CLUSTERED = Catalogue(
    operations={
        "store": common.store,
        "store three": common.store_three,
        "store a large one": common.store_large,
        "deliver": common.deliver,
        "retry a young one": own.retry_young,
        "retry a resting one": own.retry_resting,
        "bounce": common.bounce,
        "report": common.report,
        "expire": common.expire,
        "checkpoint": own.checkpoint,
        "append": own.append,
        "unlink a done one": own.unlink_done,
        "reuse a segment": own.reuse_segment,
        "fail a barrier": common.fail_a_barrier,
        "restart": common.restart,
    },
    more={
        "deliver while moved": own.while_moved(None),
        "retry while moved": own.while_moved(Area.DEFERRED),
        "deliver while moved, batches apart": own.deliver_while_moved_apart,
        "deliver when sealed": own.when_sealed(None),
        "retry when sealed": own.when_sealed(Area.DEFERRED),
        "store in the gap": own.store_in_the_gap,
        "deliver in the gap": own.in_the_gap(None),
        "retry in the gap": own.in_the_gap(Area.DEFERRED),
        "fail a checkpoint": own.fail_a_checkpoint,
        "fail a record": own.fail_a_record,
        "fail a record and deliver": own.fail_a_record_and_deliver,
        "fail twice": own.fail_twice,
        "fail a settle": common.fail_a_settle,
        "fail a large one": own.fail_a_large_one,
        "refuse a large one": common.refuse_a_large_one,
        "report with all of it": common.report_with_all_of_it,
        "report while moved": own.report_while_moved,
        "report while its barrier fails": common.report_while_its_barrier_fails,
        "store with words": common.store_with_words,
        "store many": common.store_many,
        "deliver all": common.deliver_all,
        **ACTS,
        "restart at once": own.restart_at_once,
        "kill the first start": common.kill_the_first_start,
        "kill at a segment": own.kill_at_a_segment,
    },
    needs_another=(
        "deliver",
        "retry a young one",
        "bounce",
        "expire",
        "deliver while moved",
        "retry while moved",
        "deliver while moved, batches apart",
        "deliver when sealed",
        "retry when sealed",
        "deliver in the gap",
        "retry in the gap",
        "fail a record and deliver",
        "fail twice",
        "fail a settle",
        "deliver all",
        *ACTS,
    ),
    needs_young=("retry a young one", "fail twice"),
)

COMMON = Catalogue(
    operations={
        "store": common.store,
        "store three": common.store_three,
        "store a large one": common.store_large,
        "deliver": common.deliver,
        "retry": common.retry,
        "bounce": common.bounce,
        "report": common.report,
        "expire": common.expire,
        "fail a barrier": common.fail_a_barrier,
        "restart": common.restart,
    },
    more={
        "fail a settle": common.fail_a_settle,
        "refuse a large one": common.refuse_a_large_one,
        "report with all of it": common.report_with_all_of_it,
        "report while its barrier fails": common.report_while_its_barrier_fails,
        "store many": common.store_many,
        "deliver all": common.deliver_all,
        **ACTS,
        "kill the first start": common.kill_the_first_start,
    },
    needs_another=("deliver", "retry", "bounce", "expire", "fail a settle", "deliver all", *ACTS),
)
"""What every provider does."""

LOG = Catalogue(
    operations={
        **COMMON.operations,
        "round": log.round_of_marks,
        "use segments": log.use_segments,
    },
    more={
        **COMMON.more,
        "deliver in a round": log.in_a_round(None),
        "retry in a round": log.in_a_round(Area.DEFERRED),
        "round at once": log.round_at_once,
        "fail all syncs": log.fail_marks_in_the_current_one,
        "fail two segments": log.fail_two_segments,
        "fail a mark": log.fail_a_mark,
        "fail positions": log.fail_positions,
        "restart without a segment": log.restart_without_a_segment,
        "hang": log.hang,
        "hang for ever": log.hang_for_ever,
        "defer long": log.defer_long,
        "compact": log.compact,
        "settle while compacting": log.settle_while_compacting,
        "hang while moved": log.moved_while_it_hangs(log.let_it_hang, (0,)),
        "deliver what hangs while moved": log.moved_while_it_hangs(log.settle_it(None), range(log.FREED + 1)),
        "retry what hangs while moved": log.moved_while_it_hangs(
            log.settle_it(Area.DEFERRED), (log.WRITTEN, log.TOLD, log.MARKED)
        ),
        "restart while what hangs is moved": log.moved_while_it_hangs(
            log.restart_then, (0, log.WRITTEN, log.TOLD, log.MARKED, log.FREED)
        ),
        "store with words": common.store_with_words,
    },
    needs_another=(
        *COMMON.needs_another,
        "deliver in a round",
        "retry in a round",
        "hang",
        "hang for ever",
        "defer long",
        "compact",
        "settle while compacting",
        "round at once",
        "fail all syncs",
    ),
)

CHUNK = Catalogue(
    operations={
        **COMMON.operations,
        "preprocess": chunk.preprocess,
        "give a number again": chunk.give_a_number_again,
        "inject": beside.inject,
    },
    more={
        **COMMON.more,
        "store with words": common.store_with_words,
        "fail a directory": chunk.fail_a_directory,
        "fail a name in todo": chunk.fail_a_name_in_todo,
        "fail a retry": chunk.fail_a_change(Area.DEFERRED),
        "fail a bounce": chunk.fail_a_change(Area.BOUNCES),
        "inject while looked for": beside.inject_while_looked_for,
        "start while injected": beside.start_while_injected,
        "kill an injection": beside.kill_an_injection,
        "fail an injection": beside.fail_an_injection,
        "fail an end": chunk.fail_a_change(None),
        "retry until it is written anew": chunk.retry_often,
    },
    needs_another=(
        *COMMON.needs_another,
        "preprocess",
        "fail a retry",
        "fail a bounce",
        "fail an end",
        "retry until it is written anew",
    ),
)

_OWN = {"clustered": CLUSTERED, "log": LOG, "chunk": CHUNK}


def catalogue_of(subject: Subject) -> Catalogue:
    """The operations of a provider; those that every provider has where none are its own."""
    return _OWN.get(subject.name, COMMON)
