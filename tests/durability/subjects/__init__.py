"""The providers under proof, each as the proofs see it.

interface    what a proof must know of a provider
clustered    the clustered provider
chunk        the one-file-a-message provider
log          the log-structured provider
naive        a deliberately naive provider (`tests.naive`), which the proofs must catch
named        a provider by its name, and the option `--provider`
"""
