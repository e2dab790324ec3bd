"""Benchmarks and whole-server trials: real processes, real sockets, real files. How to run them: docs/benchmarks.md."""
