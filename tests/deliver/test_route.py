"""Routes: where a recipient goes."""

from __future__ import annotations

import pytest

from mailismus.deliver.route import NO_ROUTE, UNKNOWN_USER, Local, NextHop, Router
from tests.deliver.harness import DIRECTORY, relay


@pytest.mark.parametrize(
    ("recipient", "route"),
    [
        (b"joe@home.example", Local(b"joe")),
        (b"JOE@HOME.Example", Local(b"joe")),
        (b'"joe"@home.example', Local(b"joe")),
        (b"postmaster@home.example", Local(b"joe")),
        (b"PostMaster", Local(b"joe")),
        (b"nobody@home.example", UNKNOWN_USER),
        (b"joe@b.example", NextHop("192.0.2.2", 26)),
        (b"joe@B.EXAMPLE", NextHop("192.0.2.2", 26)),
        (b"joe@sub.b.example", NextHop("192.0.2.1", 25)),
        (b"joe@[192.0.2.7]", NextHop("192.0.2.1", 25)),
    ],
)
def test_routes(recipient: bytes, route: object) -> None:
    router = Router(DIRECTORY, (relay("192.0.2.1"), relay("192.0.2.2", 26, b"B.example")))
    assert router.route(recipient) == route


def test_without_relays_there_is_no_route() -> None:
    assert Router(DIRECTORY, ()).route(b"joe@b.example") is NO_ROUTE
