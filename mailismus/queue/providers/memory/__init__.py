"""A queue in memory: the model of the provider interface, for tests. Durable never.

Modules, each with what it is:

    held        a message with its content
    content     the bytes of a large message, in pieces
    draft       a message while it arrives
    looking     counts and pages. Pure
    provider    `MemoryQueue`
"""

from mailismus.queue.providers.memory.provider import MemoryQueue

__all__ = ["MemoryQueue"]
