"""The shared queue: its stores, each by a model in memory and by the real service.

Modules and rooms, bottom first:

    models          the stores in memory, with fates of calls
    conformance     the suites that models and clients pass
    waiting         the global reactor, turned until a result is there
    contract        the contract of a queue, without what takes long
    services        the running services of `tests.services`, or the reason why a test is skipped
    harness         a server of the queue, and one over the models
    real            a server over the running services
"""
