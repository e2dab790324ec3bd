"""The implementations of `queue.interface`. Providers import no provider.

Modules, each with what it is:

    clustered   local files: journal, cluster files, silos
    memory      in memory, for tests
"""
