"""One request and its answer, over connections that are kept.

*Rules*: no put is repeated here. What fails before a connection is there is `NotDone`; whatever fails later is
`Unanswered`, for the request may have arrived.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectError, DNSLookupError
from twisted.internet.interfaces import IReactorTime
from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.web.client import Agent, BrowserLikePolicyForHTTPS, HTTPConnectionPool
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse

from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from mailismus.queue.providers.distributed.stores.http.body import Collected, SentBody
from mailismus.queue.providers.distributed.stores.objects import IBody

CONNECT_S = 5.0
ANSWER_S = 10.0
CONNECTIONS = 32
SHORT_BYTES = 4 * 1024 * 1024
"""Of an answer that is read as a whole: a page of a thousand keys has some hundred KB."""


@attrs.frozen
class StoreRequest:
    """A request of a store: the full address, percent-encoded."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: IBody | None = None


class HttpAgent:
    """Requests of one client. `ca`: certificates in PEM that the store's own must lead to; empty: those of the system."""

    def __init__(self, reactor: IReactorTime, store: str, ca: bytes = b"") -> None:
        self.reactor, self.store = reactor, store
        pool = HTTPConnectionPool(reactor, persistent=True)
        pool.maxPersistentPerHost = CONNECTIONS
        pool.retryAutomatically = True  # of what reads or removes, where the store has closed an idle connection
        self._pool = pool
        trust = trustRootFromCertificates([Certificate.loadPEM(ca)]) if ca else None
        policy = BrowserLikePolicyForHTTPS(trust) if trust else BrowserLikePolicyForHTTPS()
        self._agent = Agent(reactor, policy, connectTimeout=CONNECT_S, pool=self._pool)

    async def ask(self, request: StoreRequest) -> IResponse:
        """The head of the answer. Its body must be read, by `read` or otherwise. Raises `NotDone` or `Unanswered`."""
        headers = Headers({name: [value] for name, value in request.headers.items() if name != "host"})
        body = SentBody(self.reactor, request.body) if request.body is not None else None
        asked = self._agent.request(request.method.encode(), request.url.encode(), headers, body)
        late = self.reactor.callLater(ANSWER_S, asked.cancel)
        try:
            return await asked
        except (ConnectError, DNSLookupError) as error:
            raise NotDone(self.store, f"can't be reached: {_reason(error)}") from error
        except CancelledError as error:
            raise Unanswered(self.store, f"no answer in {ANSWER_S:g} s") from error
        except Exception as error:
            raise Unanswered(self.store, _reason(error)) from error
        finally:
            if late.active():
                late.cancel()

    async def read(self, response: IResponse) -> bytes:
        """A short body. Raises `Unanswered` where it is cut off."""
        done: Deferred[bytes | None] = Deferred()
        response.deliverBody(Collected(SHORT_BYTES, done.callback))
        late = self.reactor.callLater(ANSWER_S, lambda: None if done.called else done.callback(None))
        found = await done
        if late.active():
            late.cancel()
        if found is None:
            raise Unanswered(self.store, "its answer was cut off")
        return found

    def close(self) -> Deferred[None]:
        """End the connections."""
        closed: Deferred[None] = self._pool.closeCachedConnections()
        return closed


def _reason(error: BaseException) -> str:
    reasons = getattr(error, "reasons", None)
    if reasons:
        error = reasons[0].value
    return " ".join((str(error) or type(error).__name__).split())
