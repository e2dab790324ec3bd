"""The contract of `queue.interface`, as tests. Every provider passes all of `QueueContract`; one that claims durability
also `DurableQueueContract`; one whose storage can be broken by its harness also `FailingQueueContract`.

A provider's test module makes a subclass of each that applies, with a fixture `harness`, and calls
`check_against_a_model`.
"""

from __future__ import annotations

from tests.contracts.acting import ActingContract, DurableActingContract
from tests.contracts.claiming import ClaimingContract, DurableClaimingContract
from tests.contracts.durable import DurableQueueContract as _DurableQueueContract
from tests.contracts.entering import EnteringContract
from tests.contracts.failing import FailingQueueContract as _FailingQueueContract
from tests.contracts.history import DurableHistoryContract
from tests.contracts.leaving import LeavingContract
from tests.contracts.listening import FailingListeningContract, ListeningContract
from tests.contracts.looking import LookingContract
from tests.contracts.naming import DurableNamingContract, NamingContract
from tests.contracts.queue_machine import check_against_a_model
from tests.contracts.settling import SettlingContract
from tests.contracts.words import DurableWordsContract, WordsContract


class _MailContract(EnteringContract, LeavingContract, SettlingContract, ListeningContract, LookingContract, WordsContract):
    """What mail needs."""


class QueueContract(_MailContract, ClaimingContract, ActingContract, NamingContract):
    """What every provider guarantees while it runs."""


class DurableQueueContract(
    _DurableQueueContract,
    DurableWordsContract,
    DurableClaimingContract,
    DurableActingContract,
    DurableNamingContract,
    DurableHistoryContract,
):
    """What a provider that claims durability guarantees over a stop, clean or not."""


class FailingQueueContract(_FailingQueueContract, FailingListeningContract):
    """What a provider guarantees when its storage fails."""


__all__ = ["DurableQueueContract", "FailingQueueContract", "QueueContract", "check_against_a_model"]
