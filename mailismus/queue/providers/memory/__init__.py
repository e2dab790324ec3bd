"""A queue in memory: the model of the seam, for tests."""

from mailismus.queue.providers.memory.provider import MemoryQueue

__all__ = ["MemoryQueue"]
