"""The sender: puts letters into the server of the playground by SMTP, in a thread."""

from __future__ import annotations

import random
import smtplib
import threading
from collections.abc import Callable

from mailismus.demo.letters import Letter, write_letter
from mailismus.demo.playground import LOOPBACK

TIMEOUT_S = 10.0
AGAIN_S = 1.0
FIRST_LETTERS = 60
"""Letters at the begin, as fast as the server takes them."""


class LetterSender:
    """Sends `rate` letters a second to this port, until `stop`."""

    def __init__(self, port: int, rate: float, chance: Callable[[], float] = random.random) -> None:
        self._port, self._rate, self._chance = port, rate, chance
        self._over = threading.Event()
        self.sent = 0

    def start(self) -> None:
        """Begin to send."""
        threading.Thread(target=self._run, name="letters", daemon=True).start()

    def stop(self) -> None:
        """Send no more. A letter that is on its way is given up with the process."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with smtplib.SMTP(LOOPBACK, self._port, timeout=TIMEOUT_S) as client:
                    self._send_on(client)
            except (OSError, smtplib.SMTPException):
                self._over.wait(AGAIN_S)

    def _send_on(self, client: smtplib.SMTP) -> None:
        while not self._over.is_set():
            letter = write_letter(self.sent + 1, self._chance)
            self._send(client, letter)
            self.sent += 1
            if self.sent >= FIRST_LETTERS:
                self._over.wait(1 / self._rate)

    def _send(self, client: smtplib.SMTP, letter: Letter) -> None:
        try:
            client.sendmail(letter.sender, [letter.recipient], letter.content.encode("ascii"))
        except smtplib.SMTPResponseException:
            self._over.wait(AGAIN_S)  # the server can't take mail now
