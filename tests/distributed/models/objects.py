"""`ObjectsModel`: the object store in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from mailismus.queue.providers.distributed.stores.failure import NotDone
from mailismus.queue.providers.distributed.stores.objects import PIECE_BYTES, IBody, IObject, checked_key
from tests.distributed.models.fates import Fates, IWatch

STORE = "objects"


class ObjectsModel:
    """The store. `objects` None: there is no bucket."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.objects: dict[str, bytes] | None = None

    def client(self, clock: Clock | None = None, watch: IWatch | None = None) -> ModelObjects:
        """A client of its own fates. `clock`: of its process; `watch`: sees its calls."""
        return ModelObjects(self, clock or self.clock, watch)


class _ModelObject:
    """`IObject` of bytes."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._size_bytes = len(data)

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def next(self) -> Deferred[bytes]:
        piece = self._data[self._at : self._at + PIECE_BYTES]
        self._at += len(piece)
        return succeed(piece)

    def close(self) -> None:
        self._data = b""


class ModelObjects:
    """`IObjects` over the model."""

    def __init__(self, model: ObjectsModel, clock: Clock, watch: IWatch | None = None) -> None:
        self._model = model
        self.fates = Fates(clock, STORE, watch)

    def make(self) -> Deferred[None]:
        def act() -> None:
            if self._model.objects is None:
                self._model.objects = {}

        return self.fates.carry_out("make", act, is_reading=True)

    def is_there(self) -> Deferred[bool]:
        return self.fates.carry_out("is_there", lambda: self._model.objects is not None, is_reading=True)

    def put(self, key: str, body: IBody) -> Deferred[None]:
        checked_key(key)
        data = b"".join(body.pieces())
        sha256 = body.sha256

        def act() -> None:
            if hashlib.sha256(data).digest() != sha256:
                raise NotDone(STORE, "the sum differs")
            self._bucket()[key] = data

        return self.fates.carry_out("put", act)

    def get(self, key: str) -> Deferred[IObject | None]:
        def act() -> IObject | None:
            data = self._bucket().get(key)
            return None if data is None else _ModelObject(data)

        return self.fates.carry_out("get", act, is_reading=True)

    def remove(self, key: str) -> Deferred[None]:
        def act() -> None:
            self._bucket().pop(key, None)

        return self.fates.carry_out("remove", act)

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> Deferred[Sequence[str]]:
        def act() -> Sequence[str]:
            return [key for key in sorted(self._bucket()) if key.startswith(prefix) and key > after][:limit]

        return self.fates.carry_out("keys", act, is_reading=True)

    def close(self) -> Deferred[None]:
        return succeed(None)

    def _bucket(self) -> dict[str, bytes]:
        if self._model.objects is None:
            raise NotDone(STORE, "the bucket is not there")
        return self._model.objects
