"""The implementations of `queue.interface`. Providers import no provider.

Modules, each with what it is:

    clustered   local files: journal, cluster files, silos
    log         local files: one log of messages and outcomes
    chunk       local files: files of its own for each message
    distributed RabbitMQ, Cassandra, S3 or Swift: its stores, so far
    memory      in memory, for tests
"""
