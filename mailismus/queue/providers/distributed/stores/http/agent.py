"""One request and its answer, over connections that are kept.

*Rules*: no put is repeated here. What fails before a connection is there is `NotDone`; whatever fails later is
`Unanswered`, for the request may have arrived.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from twisted.internet.defer import Deferred, TimeoutError  # noqa: A004  # Twisted's name for it
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.error import ConnectError, DNSLookupError
from twisted.internet.interfaces import IReactorTime, IStreamClientEndpoint
from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.web.client import URI, Agent, BrowserLikePolicyForHTTPS, HTTPConnectionPool
from twisted.web.error import SchemeNotSupported
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory, IResponse
from zope.interface import implementer

from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered, reason_of
from mailismus.queue.providers.distributed.stores.http.body import Collected, SentBody
from mailismus.queue.providers.distributed.stores.objects import IBody
from mailismus.queue.providers.distributed.stores.quiet import QuietEndpoint

CONNECT_S = 5.0
ANSWER_S = 10.0
NO_ANSWER = f"no answer in {ANSWER_S:g} s"
CONNECTIONS = 32
MOST_SERVERS = 16
"""Of one store, whose endpoints are kept: a store that answers with ever other addresses takes no memory."""
SHORT_BYTES = 4 * 1024 * 1024
"""Of an answer that is read as a whole: a page of a thousand keys has some hundred KB."""


@attrs.frozen
class StoreRequest:
    """A request of a store: the full address, percent-encoded."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: IBody | None = None


@implementer(IAgentEndpointFactory)
class StoreEndpoints:
    """Where the servers of one store are: made once each, since all requests are for one or two. `ca`: as of `HttpAgent`."""

    def __init__(self, reactor: IReactorTime, ca: bytes) -> None:
        trust = trustRootFromCertificates([Certificate.loadPEM(ca)]) if ca else None
        self._policy = BrowserLikePolicyForHTTPS(trust) if trust else BrowserLikePolicyForHTTPS()
        self._reactor = reactor
        self._known: dict[tuple[bytes, bytes, int], IStreamClientEndpoint] = {}

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        place = (uri.scheme, uri.host, uri.port)
        known = self._known.get(place)
        if known is None:
            if len(self._known) >= MOST_SERVERS:
                self._known.clear()
            known = self._known[place] = self._endpoint(uri)
        return known

    def _endpoint(self, uri: URI) -> IStreamClientEndpoint:
        plain = QuietEndpoint(HostnameEndpoint(self._reactor, uri.host, uri.port, timeout=CONNECT_S))
        if uri.scheme == b"http":
            return plain
        if uri.scheme == b"https":
            return wrapClientTLS(self._policy.creatorForNetloc(uri.host, uri.port), plain)
        raise SchemeNotSupported(f"unsupported scheme: {uri.scheme!r}")


class HttpAgent:
    """Requests of one client. `ca`: certificates in PEM that the store's own must lead to; empty: those of the system."""

    def __init__(self, reactor: IReactorTime, store: str, ca: bytes = b"") -> None:
        self.reactor, self.store = reactor, store
        pool = HTTPConnectionPool(reactor, persistent=True)
        pool.maxPersistentPerHost = CONNECTIONS
        pool.retryAutomatically = True  # of what reads or removes, where the store has closed an idle connection
        self._pool = pool
        self._agent = Agent.usingEndpointFactory(reactor, StoreEndpoints(reactor, ca), pool)

    async def ask(self, request: StoreRequest) -> IResponse:
        """The head of the answer. Its body must be read, by `read` or otherwise. Raises `NotDone` or `Unanswered`."""
        headers = Headers({name: [value] for name, value in request.headers.items() if name != "host"})
        body = SentBody(self.reactor, request.body) if request.body is not None else None
        asked: Deferred[IResponse] = self._agent.request(request.method.encode(), request.url.encode(), headers, body)
        asked.addTimeout(ANSWER_S, self.reactor)
        try:
            return await asked
        except (ConnectError, DNSLookupError) as error:
            place = "/".join(request.url.split("/", 3)[:3])
            raise NotDone(self.store, f"{place} can't be reached: {_reason(error)}") from error
        except TimeoutError as error:
            raise Unanswered(self.store, NO_ANSWER) from error
        except Exception as error:
            raise Unanswered(self.store, _reason(error)) from error

    async def read(self, response: IResponse) -> bytes:
        """A short body. Raises `Unanswered` where it is cut off, or does not end in time: then its connection ends."""
        if response.length == 0:
            return b""  # its end was read with its head
        collected = Collected(SHORT_BYTES)
        response.deliverBody(collected)
        try:
            found = await collected.done.addTimeout(ANSWER_S, self.reactor)
        except TimeoutError as error:
            collected.leave()
            raise Unanswered(self.store, NO_ANSWER) from error
        if found is None:
            raise Unanswered(self.store, "its answer was cut off")
        return found

    def leave(self, response: IResponse) -> None:
        """Read nothing of a body: its connection ends."""
        unread = Collected(0)
        response.deliverBody(unread)
        unread.leave()

    def close(self) -> Deferred[None]:
        """End the connections."""
        closed: Deferred[None] = self._pool.closeCachedConnections()
        return closed


def _reason(error: BaseException) -> str:
    reasons = getattr(error, "reasons", None)
    return reason_of(reasons[0].value if reasons else error)
