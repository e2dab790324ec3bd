"""Secrets from their files, and keys derived from them: blocking work, in threads of its own.

*Rules*: a file is read for each exchange, so that a renewed token is used and no secret stays in memory between two. Keys
of SCRAM are remembered (`smtp.auth.key_memory`); several sessions that need the same wait for one derivation.
"""

from __future__ import annotations

from functools import partial

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailismus.config.values.auth import SecretSource
from mailismus.disk.worker import IWorker
from mailismus.secret_file import SecretContent, Version, read_secret, version_of
from mailismus.smtp.auth.key_memory import KeyMemory
from mailismus.smtp.auth.mechanism import Derivation, Keys
from mailismus.smtp.auth.response import wipe
from mailismus.smtp.auth.scram import derive_keys

_Key = tuple[str, Version, Derivation]


class Secrets:
    """Secrets for all sessions. `worker`: its threads are started with the first use."""

    def __init__(self, worker: IWorker) -> None:
        self._worker = worker
        self._memory = KeyMemory()
        self._deriving: dict[_Key, list[Deferred[Keys]]] = {}

    def read(self, source: SecretSource, *, is_token: bool) -> Deferred[SecretContent]:
        """Read a secret, which the caller wipes. Fails with `SecretError`."""
        return self._worker.run(partial(read_secret, source.path, is_token=is_token))

    def is_changed(self, source: SecretSource, version: Version) -> Deferred[bool]:
        """Whether the file is there and is another one than that version by now."""
        return self._worker.run(lambda: version_of(source.path) not in (None, version))

    def derive(self, password: bytearray, path: str, version: Version, derivation: Derivation) -> Deferred[Keys]:
        """Derive keys from a password in its prepared form, which is wiped. `path`, `version`: where it came from."""
        key = path, version, derivation
        done: Deferred[Keys] = Deferred()
        known = self._memory.get(key, derivation)
        waiting = self._deriving.get(key)
        if known is not None:
            wipe(password)
            done.callback(known)
        elif waiting is not None:
            wipe(password)
            waiting.append(done)
        else:
            self._deriving[key] = [done]
            self._worker.run(partial(derive_keys, password, derivation)).addBoth(self._on_keys, key)
        return done

    def forget(self) -> None:
        """Forget all keys: the configuration was read again."""
        self._memory.forget()

    def _on_keys(self, result: Keys | Failure, key: _Key) -> None:
        if isinstance(result, Keys):
            self._memory.note(key, key[2], result)
        for done in self._deriving.pop(key):
            if isinstance(result, Keys):
                done.callback(result)
            else:
                done.errback(result)
