"""The implementations of `queue.interface`. Providers import no provider.

Modules, each with what it is:

    clustered   local files: journal, cluster files, silos
    log         local files: one log of messages and outcomes. Not offered yet
    memory      in memory, for tests
"""
