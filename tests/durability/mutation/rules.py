"""Rules of the queue that no call of the disk door tells of, each with the change that breaks it.

A rule names a piece of source that is there once; a change of the source that takes it away is told by the test of the list.
"""

from __future__ import annotations

from tests.durability.mutation.acts_rules import ACTS_RULES
from tests.durability.mutation.chunk_rules import CHUNK_RULES
from tests.durability.mutation.clustered_rules import CLUSTERED_RULES
from tests.durability.mutation.distributed_aside_rules import DISTRIBUTED_ASIDE_RULES
from tests.durability.mutation.distributed_rules import DISTRIBUTED_RULES
from tests.durability.mutation.log_rules import LOG_RULES
from tests.durability.mutation.rule import Rule

RULES: dict[str, Rule] = CLUSTERED_RULES | LOG_RULES | CHUNK_RULES | ACTS_RULES | DISTRIBUTED_RULES | DISTRIBUTED_ASIDE_RULES
