"""What the servers of a shared queue must have in common: the salt of retry times, and the users' mail.

*Rules*: a server whose `<message_store>` holds no proof that it is that of the others does not start: its users would find a
part of their mail. The proof is a file in it, whose word is agreed on. Where nobody has a mailbox nothing is proved.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mailismus.deliver.knowledge.host_sharing import SharedHosts
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import IWorker
from mailismus.errors import Corrupt, StartError, Unavailable
from mailismus.maildir.store import make_directories
from mailismus.queue.files.small_file import read_small_file, replace_small_file
from mailismus.queue.sharing import ISharing

SALT, STORE = "salt", "message_store"
SALT_BYTES, WORD_BYTES = 8, 16
NAME = ".mailismus-store"
"""In the directory of the users' directories."""
_SETTING = "message_store/userpath"


class Salt:
    """The salt of retry times: a number of this run, or that of all servers of a shared queue. `random`: so many bytes."""

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self.random = random
        self._value = int.from_bytes(random(SALT_BYTES), "big")

    def __call__(self) -> int:
        return self._value

    async def agree(self, sharing: ISharing) -> None:
        """Use that of all servers from now on. Raises `Unavailable`."""
        proposed = self._value.to_bytes(SALT_BYTES, "big")
        self._value = int.from_bytes(await sharing.agree(SALT, proposed), "big")


class Common:
    """What this server has in common with others. `worker`: one thread of its own; `userpath`: of the users' directories;
    None: nobody has a mailbox here. `hosts`: what is known of hosts."""

    def __init__(
        self, sharing: ISharing, salt: Salt, worker: IWorker, disk: IDisk, userpath: str | None, hosts: SharedHosts
    ) -> None:
        self._sharing, self._salt, self._worker, self._disk = sharing, salt, worker, disk
        self._userpath, self._hosts = userpath, hosts

    async def start(self) -> None:
        """Agree, and begin to share. Raises `StartError`: 78 where the users' mail is not where that of the others is."""
        try:
            await self._salt.agree(self._sharing)
            if self._userpath is not None:
                self._worker.start()
                await prove_store(self._sharing, self._worker, self._disk, self._userpath, self._salt.random)
                self._worker.leave()
        except Unavailable as error:
            raise StartError(os.EX_TEMPFAIL, f"the queue can't be opened: {error}") from error
        self._hosts.start()

    def stop(self) -> None:
        """Share nothing more."""
        self._hosts.stop()


async def prove_store(
    sharing: ISharing, worker: IWorker, disk: IDisk, directory: str, random: Callable[[int], bytes]
) -> None:
    """Prove that this directory of users' directories is that of all servers. Raises `StartError`: 78 where it is not;
    `Unavailable`."""
    path = os.path.join(directory, NAME)
    try:
        here = await worker.run(lambda: _read(disk, path))
        if here is not None:
            if await sharing.agree(STORE, here) != here:
                raise _other(path, "is of another queue, or of another directory of users")
            return
        if await sharing.agreed(STORE) is None:
            word = random(WORD_BYTES).hex().encode("ascii")
            if await sharing.agree(STORE, word) == word:
                await worker.run(lambda: _write(disk, directory, path, word))
                return
        word = await sharing.agree(STORE, b"")
        here = await worker.run(lambda: _read(disk, path))  # another server may have begun to use it meanwhile
        if here != word:
            text = word.decode("ascii", "backslashreplace")
            raise _other(path, f"is not there; if it is the same all the same, as a restored copy is: echo {text} > {path}")
    except (OSError, Corrupt) as error:
        raise StartError(os.EX_IOERR, f"{path} can't be read or written: {error}", _SETTING) from error


def _other(path: str, why: str) -> StartError:
    text = f"<message_store> is not known to be that of the other servers of this queue: {path} {why}"
    return StartError(os.EX_CONFIG, text, _SETTING)


def _read(disk: IDisk, path: str) -> bytes | None:
    found = read_small_file(disk, path, 100, "the proof of a message store")
    return None if found is None else found.strip()


def _write(disk: IDisk, directory: str, path: str, word: bytes) -> None:
    make_directories(disk, directory)
    replace_small_file(disk, path, f"{path}.new", word + b"\n")
