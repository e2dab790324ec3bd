"""The shared queue: its stores, each by a model in memory and by the real service.

Modules and rooms, bottom first:

    models          the stores in memory, with fates of calls
    conformance     the suites that models and clients pass
    waiting         the global reactor, turned until a result is there
    services        the running services of `tests.services`, or the reason why a test is skipped
"""
