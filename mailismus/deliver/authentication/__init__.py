"""Authentication towards relays: what a session does between EHLO and its first transaction, with the secret's file.

Modules, leaves first:

    failure     how authentication can fail, and what is said of it (pure)
    secrets     secrets from their files, and keys derived from them, in other threads
    attempt     the authentication of one session
    misses      sessions that were not authenticated: what follows, logged and counted
"""
